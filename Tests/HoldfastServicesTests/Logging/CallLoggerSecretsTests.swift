// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastSemantics
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("CallLogger: no secret ever appears", .timeLimit(.minutes(20)))
struct CallLoggerSecretsTests {
    struct Service: WebService {
        static let shared = ServiceClient(Service(), transport: ScriptedTransport([]))
        var baseURL = URL(filePath: "/")
        var credential = "none"
        var authorization: Authorization { get async throws { .custom(key: "X-Odd-Name", value: credential) } }
    }

    struct Login: InOutEndpoint {
        struct Input: Encodable, Sendable {
            var username: String
            var password: String
        }
        struct Output: Decodable, Sendable { var token: String }
        typealias Service = CallLoggerSecretsTests.Service
        static let method = Method.post
        let path = "login"
    }

    /// A secret whose letters occur nowhere else, and which must be encoded wherever it goes.
    private static func secret(_ number: Int, using generator: inout SeededGenerator) -> String {
        let odd = Array("ÄÖ&=/+%\"\\ zqj;")
        return "zq\(number)j" + String((0..<8).map { _ in odd[Int.random(in: 0..<odd.count, using: &generator)] })
            + "jqz"
    }

    /// A trace of a secret that survives any encoding.
    private static func traces(_ number: Int) -> [String] { ["zq\(number)j", "jqz"] }

    @Test(
        "Wherever a secret is in a call, and whatever its form, no message shows it",
        arguments: [0, 64, 100_000]
    )
    func everywhere(_ bodyLimit: Int) async throws {
        let seed: UInt64 = 77
        var generator = SeededGenerator(seed: seed)
        let names = [
            "token", "access_token", "password", "api_key", "clientSecret", "X-Amz-Signature", "key", "user[pin]",
            "code",
        ]
        for round in 0..<18 {
            func secret() -> String { Self.secret(round, using: &generator) }
            func encoded(_ text: String) -> String {
                text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            }
            let name = names[round % names.count]
            let query =
                "a=1&\(encoded(name))=\(encoded(secret()))&next=\(encoded("https://u:\(encoded(secret()))@h/?token=\(encoded(secret()))"))"
            let user = "u:\(encoded(secret()))"
            var request = URLRequest(
                url: try #require(URL(string: "https://\(user)@example.com/p?\(query)#id_token=\(encoded(secret()))"))
            )
            request.httpMethod = "POST"
            let basic = Data("ann:\(secret())".utf8).base64EncodedString()
            let headerSecret = encoded(secret())
            request.setValue("Basic \(basic)", forHTTPHeaderField: "Authorization")
            request.setValue("a=\(headerSecret); b=\(encoded(secret()))", forHTTPHeaderField: "Cookie")
            request.setValue(encoded(secret()), forHTTPHeaderField: "X-Odd")
            request.setValue("https://h/?sig=\(encoded(secret()))", forHTTPHeaderField: "Referer")
            let body: Data
            if round.isMultiple(of: 2) {
                request.setValue("application/json", forHTTPHeaderField: "Content-Type")
                let jsonName = name == "code" ? "pin" : name
                let tree: [String: Any] = [
                    "list": [["x": 1, jsonName: [secret(), ["deep": secret()]]]], "plain": "Bearer \(secret())",
                ]
                body = try JSONSerialization.data(withJSONObject: tree)
            } else {
                request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
                body = Data("a=b&\(encoded(name))=\(encoded(secret()))".utf8)
            }
            let answer = try JSONSerialization.data(withJSONObject: ["refresh_token": secret(), "echo": headerSecret])
            let texts = LoggedTexts()
            var configuration = PipelineConfiguration()
            configuration.clock = ManualClock(autoAdvances: true)
            let pipeline = Pipeline(
                transport: ScriptedTransport([
                    .respond(
                        200,
                        [
                            "Content-Type": "application/json; charset=utf-8",
                            "Set-Cookie": "s=\(encoded(secret())); HttpOnly",
                            "Location": "/cb?state=1&code=\(encoded(secret()))", "X-Echo": "was \(headerSecret)",
                        ],
                        body: String(decoding: answer, as: UTF8.self)
                    ),
                    .fail(
                        ServiceError(
                            .connectionLost,
                            "https://h/?token=\(encoded(secret())) of \(headerSecret)",
                            progress: .bodySent
                        )
                    ),
                ]),
                hooks: [texts.logger(bodies: bodyLimit)],
                configuration: configuration
            )
            var options = CallOptions()
            options.credentialFields = ["X-Odd"]
            _ = try await pipeline.send(request, body: .data(body), options: options)
            _ = try? await pipeline.send(request, body: .data(body), options: options)
            #expect(texts.all.count == 4)
            for trace in Self.traces(round) + [basic, String(basic.dropFirst(6).prefix(8))] {
                #expect(!texts.joined.contains(trace), "seed \(seed), round \(round): \(texts.joined)")
            }
        }
    }

    @Test(
        "As a hook of typed calls: names are known, no credential in any field is shown, and the filter is by name"
    )
    func typed() async throws {
        let url = try #require(URL(string: "https://example.com/api"))
        for (filter, count) in [
            (CallLogger.Filter.all, 2), (.operations("Service"), 2), (.operations("Service.Login"), 2),
            (.operations("Service.Log"), 0), (.operations("Other"), 0), (.hosts("example.com"), 2),
            (.hosts("other.com"), 0),
        ] {
            let texts = LoggedTexts()
            var logger = texts.logger()
            logger.filter = filter
            let transport = ScriptedTransport([
                .respond(
                    200,
                    ["Content-Type": "application/json"],
                    body: #"{"token":"t0ken-value","seen":"cr3d-value"}"#
                )
            ])
            let client = ServiceClient(
                Service(baseURL: url, credential: "cr3d-value"),
                transport: transport,
                requestHooks: [logger]
            )
            let output = try await Login().makeRequest(
                to: client,
                with: Login.Input(username: "ann", password: "p4ss-word")
            )
            #expect(output.token == "t0ken-value")
            #expect(texts.all.count == count)
            guard count > 0 else { continue }
            #expect(texts.all[0].hasPrefix("Service.Login POST https://example.com/api/login\n"))
            #expect(texts.all[0].contains("  X-Odd-Name: <redacted>"))
            #expect(texts.all[0].hasSuffix(#"{"password":"<redacted>","username":"ann"}"#))
            #expect(texts.all[1].hasPrefix("Service.Login POST https://example.com/api/login -> 200, network\n"))
            for secret in ["t0ken-value", "cr3d-value", "p4ss-word"] { #expect(!texts.joined.contains(secret)) }
        }
    }

    @Test(
        "Credentials under vendor-specific names are hidden in fields, queries and forms",
        arguments: [
            "Ocp-Apim-Subscription-Key", "x-functions-key", "X-Auth", "X-Auth-Key", "subscription-key", "passcode",
            "SAMLResponse", "device_code", "subscriptionKey", "user.pin", "X-Sig",
        ]
    )
    func vendors(_ name: String) async throws {
        let texts = LoggedTexts()
        let transport = ScriptedTransport([.respond(200, ["X-Echo": "s3cret-of-vendor"])])
        var request = URLRequest(url: try #require(URL(string: "https://example.com/?\(name)=s3cret-of-vendor")))
        request.httpMethod = "POST"
        request.setValue("s3cret-of-vendor", forHTTPHeaderField: name.replacing(".", with: "-"))
        request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
        let body = RequestBody.data(Data("\(name)=s3cret-of-vendor".utf8))
        _ = try await Pipeline(transport: transport, hooks: [texts.logger()]).send(request, body: body)
        #expect(!texts.joined.contains("s3cret-of-vendor"))
        #expect(texts.all[0].hasSuffix("\n  \(name)=<redacted>"))
        #expect(texts.all[0].contains("?\(name)=<redacted>\n"))
    }

    @Test(
        "An unknown value is replaced by a mark, the same for the same value, unless the program allows it"
    )
    func unknown() async throws {
        let texts = LoggedTexts()
        func send(_ logger: CallLogger) async throws -> [String] {
            let transport = ScriptedTransport([.respond(200, ["X-Tenant-Name": "contoso", "Server": "one"])])
            var request = URLRequest(
                url: try #require(URL(string: "https://example.com/?tenant=contoso&page=2000&n=12"))
            )
            request.setValue("contoso", forHTTPHeaderField: "X-Tenant-Name")
            request.setValue("fabrikam", forHTTPHeaderField: "X-Other")
            _ = try await Pipeline(transport: transport, hooks: [logger]).send(request)
            return Array(texts.all.suffix(2))
        }
        let hidden = try await send(texts.logger())
        let mark = try #require(hidden[0].firstMatch(of: /\?tenant=(<#[0-9a-f]{6}>)&page=2000&n=12/)?.1)
        #expect(hidden[0].contains("  X-Tenant-Name: \(mark)") && hidden[1].contains("  X-Tenant-Name: \(mark)"))
        #expect(!hidden[0].contains("X-Other: \(mark)") && hidden[1].contains("  Server: one"))
        #expect(!texts.joined.contains("contoso") && !texts.joined.contains("fabrikam"))
        var logger = texts.logger()
        logger.redaction.shownFields.insert("X-Tenant-Name")
        logger.redaction.shownArguments.insert("tenant")
        let shown = try await send(logger)
        #expect(shown[0].contains("?tenant=contoso&") && shown[1].contains("  X-Tenant-Name: contoso"))
    }

    @Test("Secrets in JSON within JSON, and in URLs that were encoded several times, are hidden")
    func nested() async throws {
        let inner = #"{"list":[{"password":"s3cret-within"}]}"#
        let middle = String(decoding: try JSONEncoder().encode(["event": inner]), as: UTF8.self)
        let outer = String(decoding: try JSONEncoder().encode(["message": middle]), as: UTF8.self)
        var url = "https://h/?access_token=s3cret-in-url"
        for _ in 0..<3 { url = url.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "" }
        let texts = LoggedTexts()
        let pipeline = Pipeline(
            transport: ScriptedTransport([.respond(200, ["Content-Type": "application/json"], body: outer)]),
            hooks: [texts.logger()]
        )
        _ = try await pipeline.send(URLRequest(url: try #require(URL(string: "https://example.com/?from=\(url)"))))
        #expect(!texts.joined.contains("s3cret"))
        #expect(texts.all[1].contains("list") && texts.all[0].contains("access_token=<redacted>"))
        let deep = String(repeating: "?from=", count: 20_000) + "s3cret"
        _ = try? await pipeline.send(URLRequest(url: try #require(URL(string: "https://example.com/\(deep)"))))
        #expect(!texts.joined.contains("s3cret"))
    }

    @Test("A value is hidden where its name is the property beside it", arguments: ["name", "key", "Name"])
    func namedBeside(_ name: String) async throws {
        let value = name == "Name" ? "Value" : "value"
        let texts = LoggedTexts()
        let body =
            #"{"list":[{"\#(name)":"db_password","\#(value)":"s3cret"},{"\#(name)":"x","a":7}],"#
            + #""deep":{"\#(name)":"token","\#(value)":{"x":["s3cret-within"]}},"#
            + #""plain":{"name":"color","value":"red"}}"#
        let pipeline = Pipeline(
            transport: ScriptedTransport([.respond(200, ["Content-Type": "application/json"], body: body)]),
            hooks: [texts.logger()]
        )
        _ = try await pipeline.send(URLRequest(url: try #require(URL(string: "https://example.com/"))))
        #expect(!texts.joined.contains("s3cret"))
        #expect(texts.all[1].contains(#""a":7"#) && texts.all[1].contains(#"{"name":"color","value":"red"}"#))
    }

    @Test("A failed typed call is logged with its name and its kind of failure")
    func failed() async throws {
        let texts = LoggedTexts()
        let url = try #require(URL(string: "https://example.com/api"))
        let transport = ScriptedTransport([.respond(403, ["Content-Type": "application/json"], body: #"{"m":"no"}"#)])
        let client = ServiceClient(Service(baseURL: url), transport: transport, requestHooks: [texts.logger()])
        await #expect(throws: (any Error).self) {
            _ = try await Login().makeRequest(to: client, with: Login.Input(username: "ann", password: "p4ss-word"))
        }
        #expect(texts.all.count == 2)
        #expect(texts.all.last?.hasPrefix("Service.Login failed: unacceptable-status\n") == true)
        #expect(texts.all.last?.hasSuffix("\n  status 403") == true)
    }
}
