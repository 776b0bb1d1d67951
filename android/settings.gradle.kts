// The Android artefact and its sample. Comeback's Kotlin comes as Maven artefacts: `cargo xtask bindings`, then `mvn install` in bindings/kotlin.
pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}

dependencyResolutionManagement {
    repositoriesMode = RepositoriesMode.FAIL_ON_PROJECT_REPOS
    repositories {
        mavenLocal { content { includeGroup("dev.comeback") } }
        google()
        mavenCentral()
    }
}

rootProject.name = "comeback-for-android"
include(":comeback-android", ":sample")
