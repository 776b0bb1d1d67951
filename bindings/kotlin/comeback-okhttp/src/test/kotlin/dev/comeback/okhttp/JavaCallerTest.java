// What a Java caller writes: if this compiles and runs, no Kotlin is needed.
package dev.comeback.okhttp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.comeback.Comeback;
import dev.comeback.RetryPolicy;
import dev.comeback.RetryReports;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import mockwebserver3.MockResponse;
import mockwebserver3.MockWebServer;
import okhttp3.Call;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import okhttp3.ResponseBody;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import retrofit2.Retrofit;
import retrofit2.http.GET;

class JavaCallerTest {
    private static final RetryPolicy QUICK = quick();

    private static RetryPolicy quick() {
        RetryPolicy.Builder builder = RetryPolicy.builder(RetryPolicy.READ);
        builder.setBaseMillis(1L);
        builder.setCapMillis(2L);
        builder.setMaxAttempts(3);
        return builder.build();
    }

    interface Shop {
        @Retry(policy = "quick", maxAttempts = 2)
        @GET("/")
        retrofit2.Call<ResponseBody> timetable();
    }

    private static MockWebServer busyServer() throws IOException {
        MockWebServer server = new MockWebServer();
        server.start();
        for (int i = 0; i < 3; i++) {
            server.enqueue(new MockResponse.Builder().code(503).build());
        }
        return server;
    }

    @Test
    @DisplayName("the interceptor goes on a client's builder")
    void interceptor() throws IOException {
        try (MockWebServer server = busyServer(); Comeback comeback = Comeback.builder().build()) {
            OkHttpClient client = ComebackRequests.comeback(new OkHttpClient.Builder(), comeback, QUICK).build();
            Request request = ComebackRequests.retryPolicy(new Request.Builder().url(server.url("/")), QUICK).build();
            try (Response response = client.newCall(request).execute()) {
                assertEquals(3, ComebackRequests.getRetryReport(response).getCounted());
            }
        }
    }

    @Test
    @DisplayName("the factory makes calls, with hooks as lambdas")
    void factory() throws IOException {
        try (MockWebServer server = busyServer(); Comeback comeback = Comeback.builder().build()) {
            ComebackOkHttp options = new ComebackOkHttp();
            options.setPolicyFor(request -> request.method().equals("GET") ? QUICK : null);
            options.setLabel(request -> "shop");
            ComebackCallFactory calls = new ComebackCallFactory(comeback, new OkHttpClient(), RetryPolicy.DEFAULT, options);
            calls.cancelAll();
            try (Response response = calls.newCall(new Request.Builder().url(server.url("/")).build()).execute()) {
                assertEquals(503, response.code());
                assertNotNull(ComebackRequests.getRetryReport(response));
            }
            assertEquals(3, server.getRequestCount());
            assertEquals(null, RetryReports.of(new IOException()));
        }
    }

    @Test
    @DisplayName("a Retrofit method names its policy")
    void retrofit() throws IOException {
        try (MockWebServer server = busyServer(); Comeback comeback = Comeback.builder().build()) {
            ComebackOkHttp options = new ComebackOkHttp();
            options.setPolicies(Collections.singletonMap("quick", QUICK));
            Call.Factory calls = new ComebackCallFactory(comeback, new OkHttpClient(), RetryPolicy.DEFAULT, options);
            Shop shop = new Retrofit.Builder().baseUrl(server.url("/")).callFactory(calls).build().create(Shop.class);
            assertEquals(503, shop.timetable().execute().code());
            assertEquals(2, server.getRequestCount());
        }
    }

    @Test
    @DisplayName("no public name is one that only Kotlin can write")
    void names() {
        for (Class<?> type : Arrays.asList(ComebackCallFactory.class, ComebackInterceptor.class, ComebackOkHttp.class, ComebackRequests.class, ComebackCalls.class, Retry.class)) {
            assertTrue(Arrays.stream(type.getMethods()).filter(method -> !method.isSynthetic()).noneMatch(method -> method.getName().contains("-")), type.getName());
        }
    }
}
