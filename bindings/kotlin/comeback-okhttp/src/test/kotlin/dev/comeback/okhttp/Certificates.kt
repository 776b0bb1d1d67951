// Certificates for HTTPS on loopback, made once: generating keys is slow.
package dev.comeback.okhttp

import okhttp3.tls.HandshakeCertificates
import okhttp3.tls.HeldCertificate

internal object Certificates {
    private val held: HeldCertificate =
        HeldCertificate
            .Builder()
            .addSubjectAlternativeName("127.0.0.1")
            .addSubjectAlternativeName("one.test")
            .addSubjectAlternativeName("two.test")
            .build()

    val server: HandshakeCertificates = HandshakeCertificates.Builder().heldCertificate(held).build()

    /** Trusts [server]. */
    val client: HandshakeCertificates = HandshakeCertificates.Builder().addTrustedCertificate(held.certificate).build()
}
