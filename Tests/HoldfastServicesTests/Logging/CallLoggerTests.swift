// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Keeps what a logger writes.
final class LoggedTexts: Sendable {
    private let texts = Mutex<[String]>([])
    var all: [String] { texts.withLock { $0 } }
    var joined: String { all.joined(separator: "\n") }
    func logger(bodies: Int = 10_000) -> CallLogger {
        var logger = CallLogger { text in self.texts.withLock { $0.append(text) } }
        logger.bodyLimit = bodies
        return logger
    }
}

@Suite("CallLogger", .timeLimit(.minutes(20)))
struct CallLoggerTests {
    private func pipeline(_ steps: [ScriptedTransport.Step], _ logger: CallLogger) -> Pipeline {
        var configuration = PipelineConfiguration()
        configuration.clock = ManualClock(autoAdvances: true)
        return Pipeline(transport: ScriptedTransport(steps), hooks: [logger], configuration: configuration)
    }

    private func request(_ text: String, _ fields: [String: String] = [:]) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: text)))
        request.allHTTPHeaderFields = fields
        return request
    }

    @Test("Request and response are logged with fields and content, without secrets")
    func whole() async throws {
        let texts = LoggedTexts()
        let body = #"{"user":"ann","token":"t0psecret","list":[{"apiKey":"k3y-in-list","n":1}]}"#
        let pipeline = pipeline(
            [.respond(200, ["Content-Type": "application/json", "Set-Cookie": "sid=c00kie; Path=/"], body: body)],
            texts.logger()
        )
        var request = try request(
            "https://ann:hunter2@example.com/a/b?q=1&access_token=qu3ry#x",
            ["Authorization": "Bearer b3arer", "Cookie": "a=1; b=c0ok", "X-API-Key": "k3y", "X-Trace": "7"]
        )
        request.httpMethod = "POST"
        request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        _ = try await pipeline.send(request, body: .data(Data("grant_type=password&password=p%26ss&x=1".utf8)))
        #expect(texts.all.count == 2)
        let sent = texts.all[0].replacing(/call-\d+/, with: "call")
        #expect(sent.hasPrefix("call POST https://<redacted>@example.com/a/b?q=1&access_token=<redacted>#x\n"))
        for line in ["  Authorization: <redacted>", "  Cookie: <redacted>", "  X-API-Key: <redacted>", "  X-Trace: 7"] {
            #expect(sent.split(separator: "\n").contains { $0 == line }, "\(line)")
        }
        #expect(sent.hasSuffix("\n  grant_type=password&password=<redacted>&x=1"))
        #expect(
            texts.all[1].hasSuffix(
                #"{"list":[{"apiKey":"<redacted>","n":1}],"token":"<redacted>","user":"ann"}"#
            )
        )
        #expect(texts.all[1].contains(" -> 200, network\n"))
        for secret in ["hunter2", "qu3ry", "b3arer", "c0ok", "k3y", "p%26ss", "p&ss", "t0psecret", "c00kie"] {
            #expect(!texts.joined.contains(secret), "\(secret)")
        }
    }

    @Test("A secret of the request is hidden if the response echoes it")
    func echoed() async throws {
        let texts = LoggedTexts()
        let pipeline = pipeline(
            [
                .respond(
                    400,
                    [
                        "Content-Type": "application/problem+json", "X-Echo": "got s3cretvalue",
                        "Location": "/x/s3cretvalue",
                    ],
                    body: #"{"detail":"bad s3cretvalue","got":"inform"}"#
                )
            ],
            texts.logger()
        )
        var request = try request(
            "https://example.com/",
            ["X-Auth-Token": "s3cretvalue", "Content-Type": "application/json"]
        )
        request.httpMethod = "POST"
        _ = try await pipeline.send(request, body: .data(Data(#"{"secret":{"inner":["inform"]}}"#.utf8)))
        #expect(!texts.joined.contains("s3cretvalue"))
        #expect(!texts.joined.contains("inform"))
        #expect(texts.all[1].contains("bad <redacted>"))
    }

    @Test("Fields that the call or the redaction names as credentials are hidden")
    func named() async throws {
        let texts = LoggedTexts()
        var logger = texts.logger()
        logger.redaction.fields = ["X-Mine"]
        logger.redaction.words.insert("ssn")
        logger.redaction.finally = { $0.replacing("path-secret", with: "…") }
        var options = CallOptions()
        options.credentialFields = ["X-Odd"]
        _ = try await pipeline([.respond()], logger).send(
            request(
                "https://example.com/path-secret?user_ssn=123-45",
                ["X-Odd": "odd1", "X-Mine": "mine1", "Proxy-Anything": "prox1"]
            ),
            options: options
        )
        for secret in ["odd1", "mine1", "prox1", "123-45", "path-secret"] { #expect(!texts.joined.contains(secret)) }
    }

    @Test("Content is not logged by default, is cut at the limit, and is never read from a stream or a file")
    func content() async throws {
        let silent = LoggedTexts()
        let json: HeaderFields = ["Content-Type": "application/json"]
        _ = try await pipeline([.respond(200, json, body: #"{"a":1}"#)], silent.logger(bodies: 0)).send(
            try request("https://example.com/")
        )
        #expect(!silent.joined.contains(#""a""#))

        let short = LoggedTexts()
        _ = try await pipeline(
            [.respond(200, json, body: #"{"abcdefgh":"\#(String(repeating: "x", count: 90))"}"#)],
            short.logger(bodies: 12)
        )
        .send(try request("https://example.com/"))
        #expect(short.joined.contains("{\"abcdefgh…") && !short.joined.contains("xx"))

        let streamed = LoggedTexts()
        let response = try await pipeline([.stream(200, json, chunks: ["{\"a\"", ":1}"])], streamed.logger()).send(
            request("https://example.com/"),
            body: .oneShot(ScriptedSource())
        )
        #expect(String(decoding: try await response.body.collect().array, as: UTF8.self) == #"{"a":1}"#)
        #expect(streamed.all.filter { $0.contains("streamed and not shown") }.count == 2)

        let other = LoggedTexts()
        _ = try await pipeline([.respond(200, ["Content-Type": "text/plain"], body: "password is x")], other.logger())
            .send(
                try request("https://example.com/")
            )
        #expect(other.joined.contains("content of 13 bytes is not shown"))
    }

    @Test("Failures and cancellations are logged once each, without their causes")
    func endings() async throws {
        let texts = LoggedTexts()
        let failure = ServiceError(
            .connectionLost,
            "broke at https://u:pw0rd@example.com/?sig=abcd1234 after s3cret99\nforged line",
            progress: .bodySent
        )
        await #expect(throws: ServiceError.self) {
            _ = try await pipeline([.fail(failure)], texts.logger()).send(
                try request("https://example.com/", ["Authorization": "Bearer s3cret99"])
            )
        }
        #expect(texts.all.count == 2)
        #expect(texts.all[1].contains("failed: connection-lost"))
        for secret in ["pw0rd", "abcd1234", "s3cret99", "\nforged"] { #expect(!texts.joined.contains(secret)) }
    }

    @Test("A cancelled call is logged as cancelled")
    func cancelled() async throws {
        let cancelled = LoggedTexts()
        let transport = ScriptedTransport([.silence])
        let clock = ManualClock()
        var configuration = PipelineConfiguration()
        configuration.clock = clock
        let pipeline = Pipeline(transport: transport, hooks: [cancelled.logger()], configuration: configuration)
        let request = try request("https://example.com/")
        let call = Task { try await pipeline.send(request) }
        try await transport.waitForSends(1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(cancelled.all.count == 2)
        #expect(cancelled.all.last?.hasSuffix("cancelled") == true)
    }

    @Test("Only hosts in the filter, and their subdomains, are logged")
    func hosts() async throws {
        let texts = LoggedTexts()
        var logger = texts.logger()
        logger.filter = .hosts("Example.com")
        let pipeline = pipeline([.respond(), .respond(), .respond()], logger)
        for host in ["example.com", "api.example.com", "notexample.com"] {
            _ = try await pipeline.send(try request("https://\(host)/"))
        }
        #expect(texts.all.count == 4)
        #expect(!texts.joined.contains("notexample"))
    }

    @Test("A long URL is cut")
    func long() async throws {
        let texts = LoggedTexts()
        var logger = texts.logger()
        logger.textLimit = 40
        _ = try await pipeline([.respond()], logger).send(
            try request("https://example.com/\(String(repeating: "a", count: 500))")
        )
        #expect(texts.all[0].contains("… ("))
        #expect(texts.all[0].split(separator: "\n")[0].count < 80)
    }
}

private struct ScriptedSource: ByteSource {
    func next() async throws -> ByteChunk? { nil }
    func cancel() {}
}
