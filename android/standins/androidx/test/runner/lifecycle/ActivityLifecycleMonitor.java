// A stand-in for Google's test class of that name, as far as Robolectric needs it here.
package androidx.test.runner.lifecycle;

public interface ActivityLifecycleMonitor {}
