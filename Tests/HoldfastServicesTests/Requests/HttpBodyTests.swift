// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Upload: Request {
    typealias Result = Void
    var method: HttpMethod { .post }
    var header = HttpHeader()
    var body: HttpBody
}

private struct UploadService: HttpService {
    var apiUrl: any UrlConvertible { "api.example.com" }
}

private struct Stranger: Encodable, Sendable {
    var firstName = "Ada"
    var born = Date(timeIntervalSince1970: 0)
    var address = ["zipCode": 1, "aStreet": 2]
}

private struct Unencodable: Encodable, Sendable {
    func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(self, .init(codingPath: [], debugDescription: "never"))
    }
}

@Suite("HttpBody", .timeLimit(.minutes(20)))
struct HttpBodyTests {
    /// What a transport is given: content type and content.
    private func sent(_ body: HttpBody, _ header: HttpHeader = [:]) async throws -> (type: String?, text: String) {
        let transport = ScriptedTransport([.respond(204)])
        try await Upload(header: header, body: body).schedule(
            with: ServiceClient(UploadService(), transport: transport)
        )
        let sent = try #require(transport.sent.first)
        let type = sent.request.value(forHTTPHeaderField: "Content-Type")
        #expect(sent.request.value(forHTTPHeaderField: "Content-Length") == nil)
        return (type, String(decoding: try #require(sent.body), as: UTF8.self))
    }

    @Test("Bytes, text and images have their content type")
    func plain() async throws {
        let data = Data("x".utf8)
        #expect(try await sent(.empty) == (nil, ""))
        #expect(try await sent(.data(data)) == ("application/octet-stream", "x"))
        #expect(try await sent(.data(data, contentType: "a/b")) == ("a/b", "x"))
        #expect(try await sent(.text("naïve")) == ("text/plain; charset=utf-8", "naïve"))
        #expect(try await sent(.image(data, format: .png)) == ("image/png", "x"))
        #expect(try await sent(.image(data, format: .jpeg)) == ("image/jpeg", "x"))
        #expect(try await sent(.image(data, format: ImageFormat(contentType: "image/jxl"))) == ("image/jxl", "x"))
    }

    @Test("S-T4: a content type in the request's header wins over the body's")
    func contentType() async throws {
        #expect(try await sent(.json(1), ["Content-Type": "x"]) == ("x", "1"))
        #expect(try await sent(.json(1), ["content-type": "x"]) == ("x", "1"))
    }

    @Test("S32: JSON has sorted keys, in snake_case if wanted, or whatever a given encoder makes")
    func json() async throws {
        let plain = #"{"address":{"aStreet":2,"zipCode":1},"born":0,"firstName":"Ada"}"#
        #expect(try await sent(.json(Stranger())) == ("application/json", plain))
        // The keys of a dictionary are data, not names, and stay.
        let snake = #"{"address":{"aStreet":2,"zipCode":1},"born":0,"first_name":"Ada"}"#
        #expect(try await sent(.json(Stranger(), keys: .convertToSnakeCase)) == ("application/json", snake))
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .millisecondsSince1970
        encoder.outputFormatting = .sortedKeys
        #expect(try await sent(.json([Date(timeIntervalSince1970: 1)], encoder: encoder)).text == "[1000]")
        #expect(try await sent(.json(nil as Int?)).text == "null")
    }

    @Test("D-T13, S-T8: a value that cannot be encoded is an error with its cause, and nothing is sent")
    func encodingFails() async throws {
        let transport = ScriptedTransport([.respond(204)])
        let client = ServiceClient(UploadService(), transport: transport)
        let error = await #expect(throws: ServiceError.self) {
            try await Upload(body: .json(Unencodable())).schedule(with: client)
        }
        #expect(error?.code == .encodingFailed)
        #expect(error?.cause is EncodingError)
        #expect(transport.sent.isEmpty)
    }

    @Test("S32: a form by the rules of WHATWG URL §5.2, sorted")
    func form() async throws {
        let type = "application/x-www-form-urlencoded; charset=utf-8"
        let arguments: HttpQuery = [
            "b": "a b+c&d=e~*-._é\r\n'", "a": [1, 2], "ä": true, "n": nil, "f": QueryArgument.flag,
        ]
        let text = "a=1&a=2&b=a+b%2Bc%26d%3De%7E*-._%C3%A9%0D%0A%27&f=&%C3%A4=true"
        #expect(try await sent(.formURLEncoded(arguments)) == (type, text))
        #expect(try await sent(.formURLEncoded([:])) == (type, ""))
        #expect(HttpQuery(encoded: text)["b"] == "a b+c&d=e~*-._é\r\n'")
    }

    @Test("S32: arrays with or without brackets, booleans as words or numbers")
    func notation() async throws {
        let arguments: HttpQuery = ["k": [1, 2], "t": [true, false], "b": true, "e": [String](), "s": "true"]
        let texts: [(FormNotation, String)] = [
            (FormNotation(), "b=true&k=1&k=2&s=true&t=true&t=false"),
            (FormNotation(arrays: .brackets), "b=true&k%5B%5D=1&k%5B%5D=2&s=true&t%5B%5D=true&t%5B%5D=false"),
            (FormNotation(arrays: .indexed), "b=true&k%5B0%5D=1&k%5B1%5D=2&s=true&t%5B0%5D=true&t%5B1%5D=false"),
            (FormNotation(booleans: .numbers), "b=1&k=1&k=2&s=true&t=1&t=0"),
        ]
        for (notation, text) in texts {
            #expect(try await sent(.formURLEncoded(arguments, notation: notation)).text == text)
        }
    }

    @Test("A form of items keeps their order, and each has a name")
    func items() async throws {
        let items = [HttpQuery.Item(name: "z", value: 1), HttpQuery.Item(name: "a", value: 2)]
        #expect(try await sent(.formURLEncoded(items: items)).text == "z=1&a=2")
        for body in [.formURLEncoded(["": 1]), .formURLEncoded(items: [.init(name: "", value: 1)])] as [HttpBody] {
            let error = #expect(throws: ServiceError.self) { try body.encode() }
            #expect(error?.code == .badRequest)
        }
    }

    @Test("A file is sent unchanged, and a missing one is an error before anything is sent")
    func file() async throws {
        let folder = try TemporaryFolder()
        let url = try folder.file("a.csv", "1;2".utf8)
        #expect(try await sent(.file(url, contentType: "text/csv")) == ("text/csv", "1;2"))
        let transport = ScriptedTransport([.respond(204)])
        let client = ServiceClient(UploadService(), transport: transport)
        let error = await #expect(throws: ServiceError.self) {
            try await Upload(body: .file(folder.url.appendingPathComponent("none"))).schedule(with: client)
        }
        #expect(error?.code == .badRequest)
        #expect(transport.sent.isEmpty)
    }
}
