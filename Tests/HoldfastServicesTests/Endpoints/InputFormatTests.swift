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

@Suite("Input formats", .timeLimit(.minutes(20)))
struct InputFormatTests {
    struct Values: Encodable, Sendable {
        var text = "weird&=?<>+"
        var list = [2, 1]
        var absent: Int?
        enum CodingKeys: CodingKey { case text, list, absent }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(text, forKey: .text)
            try container.encode(list, forKey: .list)
            try container.encode(absent, forKey: .absent)
        }
    }

    struct Search: InEndpoint {
        typealias Service = EndpointBed.Service
        typealias Input = Values
        static let inputFormat = InputFormat.urlQuery
        let path = "search"
    }

    struct Replace: InEndpoint {
        typealias Service = EndpointBed.Service
        typealias Input = Values
        static let method = Method.put
        static let inputFormat = InputFormat.urlQuery
        let path = "search"
    }

    struct Create: InEndpoint {
        typealias Service = EndpointBed.Service
        typealias Input = Values
        static let method = Method.post
        static let inputFormat = InputFormat.urlQuery
        let path = "search"
    }

    struct Submit: InEndpoint {
        typealias Service = EndpointBed.Service
        typealias Input = Values
        static let method = Method.post
        static let inputFormat = InputFormat.formURLEncoded
        let path = "submit"
    }

    struct Upload: InEndpoint {
        struct Input: Encodable, Sendable {
            var title = "Sea & sky"
            var at = Date(timeIntervalSince1970: 12)
            var owner = ["name": "Ann"]
            var missing: String? = .none
            var photos: [File]
            var note: File?
        }
        typealias Service = EndpointBed.Service
        static let method = Method.post
        static let inputFormat = InputFormat.formData
        let path = "upload"
        func configure(_ encoder: inout KeyValueEncoder) throws {
            encoder.dates = .secondsSince1970
        }
    }

    struct DottedService: WebService {
        static let shared = ServiceClient(DottedService(), transport: ScriptedTransport([]))
        var baseURL: URL { EndpointBed.Service("https://example.com/").baseURL }
        func configure(_ encoder: inout KeyValueEncoder, for endpoint: some Endpoint) throws {
            encoder.arrays = .repeated
            encoder.nesting = .dots
        }
    }

    private func sent(_ call: (ServiceClient<EndpointBed.Service>) async throws -> Void) async throws
        -> ScriptedTransport.Sent
    {
        let transport = ScriptedTransport([.respond()])
        try await call(ServiceClient(EndpointBed.Service(), transport: transport))
        return try #require(transport.sent.first)
    }

    private static let query = "absent&list=2&list=1&text=weird%26%3D%3F%3C%3E%2B"

    @Test("D-T10, D-T11: values go into the URL, encoded, for any method, without content or its fields")
    func urlQuery() async throws {
        for (method, sent) in [
            ("GET", try await sent { try await Search().makeRequest(to: $0, with: Values()) }),
            ("PUT", try await sent { try await Replace().makeRequest(to: $0, with: Values()) }),
            ("POST", try await sent { try await Create().makeRequest(to: $0, with: Values()) }),
        ] {
            #expect(sent.request.httpMethod == method)
            #expect(sent.request.url?.absoluteString == "https://example.com/api/v1/search?\(Self.query)")
            #expect(sent.body?.isEmpty == true)
            #expect(sent.request.value(forHTTPHeaderField: "Content-Type") == nil)
        }
    }

    @Test("D-T11: a server that parses strictly decodes the original text")
    func decoded() async throws {
        let sent = try await sent { try await Search().makeRequest(to: $0, with: Values()) }
        let query = try #require(sent.request.url?.query(percentEncoded: true))
        let pairs = try StrictForm.pairs(in: query.replacing("absent&", with: ""))
        #expect(pairs == [["list", "2"], ["list", "1"], ["text", "weird&=?<>+"]])
    }

    @Test("D-T12: a nil field that is encoded is `k` in a query and `k=` in a form, and a form has its content type")
    func form() async throws {
        let query = try await sent { try await Search().makeRequest(to: $0, with: Values()) }
        #expect(query.request.url?.query(percentEncoded: true)?.hasPrefix("absent&") == true)
        let sent = try await sent { try await Submit().makeRequest(to: $0, with: Values()) }
        let text = String(decoding: try #require(sent.body).array, as: UTF8.self)
        #expect(text == "text=weird%26%3D%3F%3C%3E%2B&list=2&list=1&absent=")
        #expect(
            sent.request.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded; charset=utf-8"
        )
        #expect(sent.request.url?.query(percentEncoded: true) == nil)
    }

    @Test("D10, D23: a multipart form has a field for each text and a part for each file, in memory or on disk")
    func multipart() async throws {
        let url = URL(filePath: NSTemporaryDirectory()).appending(path: "holdfast-\(UUID().uuidString).txt")
        try Data("from disk".utf8).write(to: url)
        defer { try? FileManager.default.removeItem(at: url) }
        let input = Upload.Input(
            photos: [
                File(name: "a.png", content: Data("bytes".utf8), type: "image/png"),
                File(at: url, name: "b.txt", type: "text/plain"),
            ]
        )
        let sent = try await sent { try await Upload().makeRequest(to: $0, with: input) }
        let type = try #require(sent.request.value(forHTTPHeaderField: "Content-Type"))
        let boundary = try #require(type.split(separator: "boundary=").last)
        #expect(type.hasPrefix("multipart/form-data; boundary="))
        let text = String(decoding: try #require(sent.body).array, as: UTF8.self)
        #expect(
            text
                == """
                --B
                Content-Disposition: form-data; name="title"

                Sea & sky
                --B
                Content-Disposition: form-data; name="at"

                12
                --B
                Content-Disposition: form-data; name="owner[name]"

                Ann
                --B
                Content-Disposition: form-data; name="photos"; filename="a.png"
                Content-Type: image/png

                bytes
                --B
                Content-Disposition: form-data; name="photos"; filename="b.txt"
                Content-Type: text/plain

                from disk
                --B--

                """.replacing("\n", with: "\r\n").replacing("--B", with: "--\(boundary)")
        )
    }

    @Test("A missing file, or one in a format that cannot send files, fails before anything is sent")
    func badFiles() async throws {
        struct Wrong: InEndpoint {
            typealias Service = EndpointBed.Service
            typealias Input = [String: File]
            static let method = Method.post
            static let inputFormat = InputFormat.formURLEncoded
            let path = "wrong"
        }
        let transport = ScriptedTransport([])
        let client = ServiceClient(EndpointBed.Service(), transport: transport)
        let absent = File(at: URL(filePath: "/nowhere/at/all"))
        await #expect(throws: (any Error).self) {
            try await Upload().makeRequest(to: client, with: Upload.Input(photos: [absent]))
        }
        let error = await #expect(throws: EndpointError.self) {
            try await Wrong().makeRequest(to: client, with: ["f": File(name: "x", content: Data())])
        }
        #expect(error?.code == .encoding)
        #expect(error.map { "\($0)".contains(".formData") } == true)
        #expect(transport.sent.isEmpty)
    }

    @Test("The service's names for fields apply first, then the endpoint's")
    func configuring() async throws {
        struct Find: InEndpoint {
            struct Input: Encodable, Sendable {
                var tags = ["x"]
                var by = ["name": "n"]
            }
            typealias Service = InputFormatTests.DottedService
            static let inputFormat = InputFormat.urlQuery
            let path = ""
            func configure(_ encoder: inout KeyValueEncoder) throws { encoder.arrays = .indexed }
        }
        let transport = ScriptedTransport([.respond()])
        try await Find().makeRequest(to: ServiceClient(DottedService(), transport: transport), with: Find.Input())
        #expect(transport.sent.first?.request.url?.absoluteString == "https://example.com/?by.name=n&tags%5B0%5D=x")
    }
}
