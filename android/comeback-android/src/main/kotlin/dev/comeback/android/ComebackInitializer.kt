// Starts the monitor before the app's own code runs, without a start-up library.
package dev.comeback.android

import android.content.ContentProvider
import android.content.ContentValues
import android.database.Cursor
import android.net.Uri

/**
 * Provides nothing. The system makes it at the start of the app's main process, and it calls [AndroidConnectivity.start], which returns at once. To
 * do without it, remove it in the app's manifest:
 *
 * ```
 * <provider android:name="dev.comeback.android.ComebackInitializer" android:authorities="${applicationId}.comeback" tools:node="remove" />
 * ```
 */
public class ComebackInitializer : ContentProvider() {
    override fun onCreate(): Boolean {
        orNull { context?.let(AndroidConnectivity::start) }
        return true
    }

    override fun query(
        uri: Uri,
        projection: Array<out String>?,
        selection: String?,
        selectionArgs: Array<out String>?,
        sortOrder: String?,
    ): Cursor? = null

    override fun getType(uri: Uri): String? = null

    override fun insert(
        uri: Uri,
        values: ContentValues?,
    ): Uri? = null

    override fun delete(
        uri: Uri,
        selection: String?,
        selectionArgs: Array<out String>?,
    ): Int = 0

    override fun update(
        uri: Uri,
        values: ContentValues?,
        selection: String?,
        selectionArgs: Array<out String>?,
    ): Int = 0
}
