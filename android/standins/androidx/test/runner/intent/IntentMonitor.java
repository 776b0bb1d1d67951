// A stand-in for Google's test class of that name, as far as Robolectric needs it here.
package androidx.test.runner.intent;

public interface IntentMonitor {}
