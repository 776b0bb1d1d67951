// What both modules share: the plugins' versions. Gradle 9.3.1 (no wrapper is committed: `gradle wrapper --gradle-version 9.3.1` makes one).
buildscript {
    repositories {
        google()
        mavenCentral()
    }
    dependencies {
        // The Android plugin compiles Kotlin itself, with 2.2 unless it finds a newer compiler here.
        classpath(libs.kotlin.gradle.plugin)
    }
}

plugins {
    alias(libs.plugins.android.library) apply false
    alias(libs.plugins.android.application) apply false
}
