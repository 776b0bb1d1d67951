// What both modules share: the plugins' versions. Gradle 9.1.0 (no wrapper is committed: `gradle wrapper --gradle-version 9.1.0` makes one).
plugins {
    alias(libs.plugins.android.library) apply false
    alias(libs.plugins.android.application) apply false
    alias(libs.plugins.kotlin.android) apply false
}
