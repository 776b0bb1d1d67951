// The AAR: native libraries, the monitor, keep rules. Its Kotlin is also compiled and tested without Gradle, by the pom.xml beside this file.
plugins {
    alias(libs.plugins.android.library)
    `maven-publish`
}

group = "dev.comeback"
version = libs.versions.comeback.get()

val repository: File = rootDir.parentFile

/** One command builds the native libraries; Gradle knows what goes in and what comes out. The NDK is found by ANDROID_NDK_HOME. */
val nativeLibraries by tasks.registering(Exec::class) {
    workingDir = repository
    commandLine("cargo", "xtask", "android", "build")
    inputs.dir(repository.resolve("src"))
    inputs.files(listOf("Cargo.toml", "Cargo.lock", "build.rs", "uniffi.toml").map(repository::resolve))
    outputs.dir(repository.resolve("target/android/jniLibs"))
}

android {
    namespace = "dev.comeback.android"
    compileSdk = 36

    defaultConfig {
        minSdk = 24
        testInstrumentationRunner = "androidx.test.runner.AndroidJUnitRunner"
        consumerProguardFiles("consumer-rules.pro")
    }
    sourceSets {
        getByName("main").jniLibs.directories += repository.resolve("target/android/jniLibs").path
        getByName("androidTest") {
            // The same files that Maven's module compiles: rules once, run on both.
            kotlin.directories += "src/sharedTest/kotlin"
            // What only a device can show.
            kotlin.directories += "src/deviceTest/kotlin"
            resources.directories += repository.resolve("tests/vectors").path
        }
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    publishing {
        singleVariant("release") { withSourcesJar() }
    }
}

kotlin {
    explicitApi()
    compilerOptions {
        jvmTarget = org.jetbrains.kotlin.gradle.dsl.JvmTarget.JVM_1_8
        languageVersion = org.jetbrains.kotlin.gradle.dsl.KotlinVersion.KOTLIN_2_2
        apiVersion = org.jetbrains.kotlin.gradle.dsl.KotlinVersion.KOTLIN_2_2
    }
}

tasks.named("preBuild") { dependsOn(nativeLibraries) }

dependencies {
    // Brings JNA as AAR and no library for desktops: so says the module metadata of comeback-ffi (bindings/kotlin/gradle/ModuleMetadata.java).
    api(libs.comeback.core)

    androidTestImplementation(libs.junit)
    androidTestImplementation(libs.serialization.json)
    androidTestImplementation(libs.androidx.test.runner)
}

publishing {
    repositories {
        // Only a release says where to: `-PmavenReleaseUrl=…`, with the account in the environment.
        providers.gradleProperty("mavenReleaseUrl").orNull?.let { address ->
            maven(address) {
                credentials {
                    username = System.getenv("MAVEN_USERNAME")
                    password = System.getenv("MAVEN_PASSWORD")
                }
            }
        }
    }
    publications {
        register<MavenPublication>("release") {
            afterEvaluate { from(components["release"]) }
        }
    }
}
