// The sample app: two buttons, a queue of attempts with their waits, and the network as Comeback sees it.
plugins {
    alias(libs.plugins.android.application)
}

android {
    namespace = "dev.comeback.sample"
    compileSdk = 36

    defaultConfig {
        applicationId = "dev.comeback.sample"
        minSdk = 24
        targetSdk = 36
        versionCode = 1
        versionName = "0.1.0"
    }
    buildTypes {
        release {
            // So that R8 sees the keep rules that the AAR brings.
            isMinifyEnabled = true
            isShrinkResources = true
            proguardFiles(getDefaultProguardFile("proguard-android-optimize.txt"))
            signingConfig = signingConfigs.getByName("debug")
        }
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
}

kotlin {
    compilerOptions { jvmTarget = org.jetbrains.kotlin.gradle.dsl.JvmTarget.JVM_1_8 }
}

dependencies {
    implementation(project(":comeback-android"))
    implementation(libs.comeback.okhttp)
}
