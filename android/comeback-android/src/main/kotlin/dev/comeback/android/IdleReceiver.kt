// Hears when the device leaves Doze: timers stood still meanwhile, the clock did not.
package dev.comeback.android

import android.content.BroadcastReceiver
import android.content.Context
import android.content.Intent
import android.content.IntentFilter
import android.os.Handler
import android.os.PowerManager

internal class IdleReceiver private constructor(
    private val context: Context,
    private val power: PowerManager,
    private val onAwake: () -> Unit,
) : BroadcastReceiver() {
    override fun onReceive(
        context: Context,
        intent: Intent,
    ) {
        orNull { if (!power.isDeviceIdleMode) onAwake() }
    }

    fun unregister() {
        context.unregisterReceiver(this)
    }

    companion object {
        /** [onAwake] is called on [handler]'s thread each time the device has left idle. */
        fun registered(
            context: Context,
            handler: Handler,
            onAwake: () -> Unit,
        ): IdleReceiver {
            val receiver = IdleReceiver(context, context.getSystemService(Context.POWER_SERVICE) as PowerManager, onAwake)
            // Only the system may send this action, so that API 34's question of exported or not does not arise.
            context.registerReceiver(receiver, IntentFilter(PowerManager.ACTION_DEVICE_IDLE_MODE_CHANGED), null, handler)
            return receiver
        }
    }
}
