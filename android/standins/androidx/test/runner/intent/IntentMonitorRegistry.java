// A stand-in for Google's test class of that name, as far as Robolectric needs it here.
package androidx.test.runner.intent;

public final class IntentMonitorRegistry {
    public static void registerInstance(IntentMonitor monitor) {}

    private IntentMonitorRegistry() {}
}
