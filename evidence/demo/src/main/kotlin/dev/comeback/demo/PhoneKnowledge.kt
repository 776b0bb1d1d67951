// What the phone believed about the link, which is not what was true.
package dev.comeback.demo

/** Notes when a client was told of a loss and of the return. */
internal class PhoneKnowledge(
    private val now: () -> Long,
) {
    private val offline = mutableListOf<Outage>()
    private var since: Long? = null

    @Synchronized
    fun told(isOffline: Boolean) {
        val began = since
        if (isOffline && began == null) since = now()
        if (!isOffline && began != null) {
            offline += Outage(began, now())
            since = null
        }
    }

    /** The stretches in which it knew of a loss; one that has not ended does so now. */
    @Synchronized
    fun offline(): List<Outage> = offline + listOfNotNull(since?.let { Outage(it, now()) })
}
