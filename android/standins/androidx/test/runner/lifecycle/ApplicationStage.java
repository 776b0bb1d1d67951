// A stand-in for Google's test class of that name, as far as Robolectric needs it here.
package androidx.test.runner.lifecycle;

public enum ApplicationStage {
    PRE_ON_CREATE,
    CREATED
}
