// Hears when the user switches airplane mode on and off, so that an offline state counts as deliberate.
package dev.comeback.android

import android.content.BroadcastReceiver
import android.content.Context
import android.content.Intent
import android.content.IntentFilter
import android.os.Handler
import android.provider.Settings

internal class AirplaneReceiver private constructor(
    private val context: Context,
    private val onChange: (isOn: Boolean) -> Unit,
) : BroadcastReceiver() {
    override fun onReceive(
        context: Context,
        intent: Intent,
    ) {
        orNull { tell() }
    }

    fun unregister() {
        context.unregisterReceiver(this)
    }

    /** As it is now: the broadcast may be late. */
    private fun tell() {
        onChange(Settings.Global.getInt(context.contentResolver, Settings.Global.AIRPLANE_MODE_ON, 0) != 0)
    }

    companion object {
        /** [onChange] is called on [handler]'s thread after each change, and at once on this one. No permission is needed. */
        fun registered(
            context: Context,
            handler: Handler,
            onChange: (isOn: Boolean) -> Unit,
        ): AirplaneReceiver {
            val receiver = AirplaneReceiver(context, onChange)
            // Only the system may send this action, so that API 34's question of exported or not does not arise.
            context.registerReceiver(receiver, IntentFilter(Intent.ACTION_AIRPLANE_MODE_CHANGED), null, handler)
            // Only now, so that a change in between is heard. What cannot be read now may be when it changes.
            orNull { receiver.tell() }
            return receiver
        }
    }
}
