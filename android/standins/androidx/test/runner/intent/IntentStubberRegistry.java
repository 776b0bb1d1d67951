// A stand-in for Google's test class of that name, as far as Robolectric needs it here.
package androidx.test.runner.intent;

public final class IntentStubberRegistry {
    public static boolean isLoaded() {
        return false;
    }

    public static IntentStubber getInstance() {
        throw new IllegalStateException("no stubber is registered");
    }

    private IntentStubberRegistry() {}
}
