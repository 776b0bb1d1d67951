// A stand-in for Google's test class of that name, as far as Robolectric needs it here.
package androidx.test.platform.app;

import android.app.Instrumentation;
import android.os.Bundle;

public final class InstrumentationRegistry {
    private static Instrumentation instrumentation;

    public static void registerInstance(Instrumentation registered, Bundle arguments) {
        instrumentation = registered;
    }

    public static Instrumentation getInstrumentation() {
        return instrumentation;
    }

    private InstrumentationRegistry() {}
}
