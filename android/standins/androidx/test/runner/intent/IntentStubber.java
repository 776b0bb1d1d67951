// A stand-in for Google's test class of that name, as far as Robolectric needs it here.
package androidx.test.runner.intent;

import android.app.Instrumentation.ActivityResult;
import android.content.Intent;

public interface IntentStubber {
    ActivityResult getActivityResultForIntent(Intent intent);
}
