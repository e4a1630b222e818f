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

private typealias Bed = EndpointBed

private struct Rename: InEndpoint {
    typealias Service = Bed.Service
    static let method = Method.put
    struct Input: Encodable {
        let name: String
        let aliases: [String]
    }
    let path = "name"
}

private struct Unwritable: InEndpoint {
    typealias Service = Bed.Service
    static let method = Method.post
    struct Input: Encodable {
        let password: String
        func encode(to encoder: any Encoder) throws {
            throw EncodingError.invalidValue(self, .init(codingPath: [], debugDescription: "never"))
        }
    }
    let path = "unwritable"
}

private struct Echo<Value: Codable & Sendable>: InOutEndpoint {
    typealias Service = Bed.Service
    typealias Input = Value
    typealias Output = Value
    static var method: Method { .post }
    let path = "echo"
}

private struct Read<Value: Codable & Sendable>: OutEndpoint {
    typealias Service = Bed.Service
    typealias Output = Value
    let path = "read"
}

/// Reads nothing, and says so.
private struct NoDecoder: BodyDecoder {
    func decode<Output: Decodable>(_ type: Output.Type, from content: Data, for coding: EndpointCoding) throws -> Output
    {
        throw ServiceError(.decodingFailed, "no decoder")
    }
}

private struct CountIn: InEndpoint {
    typealias Service = Bed.Service
    typealias Input = Int
    static let inputFormat = InputFormat.urlQuery
    let path = "count"
}

private struct CountOut: OutEndpoint {
    typealias Service = Bed.Service
    typealias Output = Int?
    static let outputFormat = OutputFormat(name: "CSV", accept: "text/csv", decoder: NoDecoder())
    let path = "count"
}

@Suite("Kinds of endpoints", .timeLimit(.minutes(20)))
struct EndpointKindTests {
    @Test("D-T8: an endpoint that declares nothing is a GET of JSON, with the credential if there is one")
    func defaults() async throws {
        #expect(Bed.CheckStatus.method == .get)
        #expect(Bed.CheckStatus.authorizationRequirement == .optional)
        #expect(Bed.CheckStatus.outputFormat.name == "JSON")
        #expect(Bed.Login.inputFormat.name == "JSON")
        #expect(Bed.CheckStatus.operationName == "CheckStatus")
        let transport = ScriptedTransport([.respond(204)])
        try await Bed.CheckStatus().makeRequest(to: Bed.client(Bed.Service(), transport))
        let sent = try #require(transport.sent.first)
        #expect(sent.request.httpMethod == "GET")
        #expect(sent.request.value(forHTTPHeaderField: "Accept") == "application/json")
        #expect(sent.request.value(forHTTPHeaderField: "Content-Type") == nil)
        #expect(sent.body?.isEmpty == true)
    }

    @Test("D-T9: input is sent as JSON content with sorted keys")
    func input() async throws {
        let transport = ScriptedTransport([.respond(204)], repeatsLastStep: true)
        let client = Bed.client(Bed.Service(), transport)
        try await Rename().makeRequest(
            to: client,
            with: Rename.Input(name: "n", aliases: ["a", "b"])
        )
        let sent = try #require(transport.sent.first)
        #expect(sent.request.httpMethod == "PUT")
        #expect(sent.request.value(forHTTPHeaderField: "Content-Type") == "application/json")
        #expect(sent.body.map { String(decoding: $0, as: UTF8.self) } == #"{"aliases":["a","b"],"name":"n"}"#)
        // Many keys, which chance does not sort.
        let numbers = Dictionary(uniqueKeysWithValues: (10..<30).map { ("k\($0)", $0) })
        _ = try? await Echo<[String: Int]>().makeRequest(to: client, with: numbers)
        let sorted = "{" + (10..<30).map { "\"k\($0)\":\($0)" }.joined(separator: ",") + "}"
        #expect(transport.sent.last?.body.map { String(decoding: $0, as: UTF8.self) } == sorted)
    }

    @Test("Input and output of one endpoint, and the response beside it")
    func inputAndOutput() async throws {
        let transport = ScriptedTransport([.respond(200, ["X-Request-Id": "7"], body: #"{"token":"t"}"#)])
        let answer = try await Bed.Login().response(
            to: Bed.client(Bed.Service(), transport),
            with: .init(username: "u", password: "p")
        )
        #expect(answer.value == Bed.Login.Output(token: "t"))
        #expect(answer.response.fields["X-Request-Id"] == "7")
        #expect(answer.response.attempts.count == 1)
    }

    @Test("Text that is not UTF-8 is a decoding error, and the format's decoder does not see it")
    func notUTF8() async throws {
        try await refusesBytes(as: String.self)
        try await refusesBytes(as: String?.self)
    }

    private func refusesBytes<Value: Codable & Sendable>(as type: Value.Type) async throws {
        let transport = AnsweringTransport {
            Response(status: .ok, body: ResponseBody(ByteChunk(copying: [0x22, 0xFF, 0x22] as [UInt8])))
        }
        let error = await endpointError {
            _ = try await Read<Value>().makeRequest(to: Bed.client(Bed.Service(), transport))
        }
        #expect(error?.code == .decoding)
        #expect(error?.details?.contains("not UTF-8") == true)
    }

    @Test("D-T13: input that cannot be encoded fails the call before anything is sent")
    func unwritable() async throws {
        let service = Bed.Service()
        let transport = ScriptedTransport([])
        let error = await endpointError {
            try await Unwritable().makeRequest(to: Bed.client(service, transport), with: .init(password: "hunter2"))
        }
        #expect(error?.code == .encoding)
        #expect(error?.details?.contains("never") == true)
        #expect(error.map { "\($0) \(String(describing: $0.cause))".contains("hunter2") } == false)
        #expect(transport.sent.isEmpty)
        #expect(service.recorder.counts == FailureRecorder.Counts(failures: 1, processed: 1))
    }

    @Test("D-T14: content that is not the output type fails with an error that names the type")
    func unreadable() async throws {
        let transport = ScriptedTransport([.respond(200, body: #"{"label":1}"#)])
        let error = await endpointError {
            _ = try await Bed.GetObject(objectId: 1).makeRequest(to: Bed.client(Bed.Service(), transport))
        }
        #expect(error?.code == .decoding)
        #expect(error?.isInternal == true)
        #expect(error?.details?.contains("as Output") == true)
        #expect(error?.details?.contains("name") == true)
        #expect(error?.status == 200)
    }

    @Test("D-T15: missing content is an error if output is declared, and not otherwise")
    func missing() async throws {
        let client = Bed.client(Bed.Service(), ScriptedTransport([.respond(200)], repeatsLastStep: true))
        let error = await endpointError { _ = try await Bed.GetObject(objectId: 1).makeRequest(to: client) }
        #expect(error?.code == .missingData)
        try await Bed.CheckStatus().makeRequest(to: client)
        // The content of an Optional, of text or of bytes may be empty.
        #expect(try await Echo<Nothing?>().makeRequest(to: client, with: nil) == nil)
        #expect(try await Echo<String>().makeRequest(to: client, with: "") == "")
    }

    @Test("D-T16: an endpoint without output succeeds or fails by its status")
    func status() async throws {
        let client = Bed.client(Bed.Service(), ScriptedTransport([.respond(204), .respond(404)]))
        try await Bed.CheckStatus().makeRequest(to: client)
        let error = await endpointError { try await Bed.CheckStatus().makeRequest(to: client) }
        #expect(error?.code == .http)
        #expect(error?.status == 404)
    }

    @Test("D-T28: an endpoint without output that is stored succeeds without sending")
    func hit() async throws {
        let transport = ScriptedTransport([.respond(200, ["Cache-Control": "max-age=60"])])
        let client = Bed.client(Bed.Service(), transport, cache: .inMemory())
        try await Bed.CheckStatus().makeRequest(to: client)
        try await Bed.CheckStatus().makeRequest(to: client)
        #expect(transport.sent.count == 1)
    }

    @Test("Text and bytes are sent and received unchanged, whatever the format")
    func raw() async throws {
        let transport = ScriptedTransport([.respond(200, body: "a\"b")], repeatsLastStep: true)
        let client = Bed.client(Bed.Service(), transport)
        #expect(try await Echo<String>().makeRequest(to: client, with: "ü") == "a\"b")
        #expect(try await Echo<Data>().makeRequest(to: client, with: Data([1, 2])) == Data("a\"b".utf8))
        #expect(transport.sent[0].request.value(forHTTPHeaderField: "Content-Type") == "text/plain; charset=utf-8")
        #expect(transport.sent[0].body.map { Array($0) } == Array("ü".utf8))
        #expect(transport.sent[1].request.value(forHTTPHeaderField: "Content-Type") == "application/octet-stream")
        #expect(transport.sent[1].body.map { Array($0) } == [1, 2])
    }

    @Test("Formats other than JSON refuse a bare number, as input and output, before anything is sent")
    func refusedScalar() async throws {
        let transport = ScriptedTransport([])
        let client = Bed.client(Bed.Service(), transport)
        let input = await endpointError { try await CountIn().makeRequest(to: client, with: 7) }
        #expect(input?.code == .encoding)
        #expect(input?.details?.contains("A bare Int cannot be written as urlQuery") == true)
        let output = await endpointError { _ = try await CountOut().makeRequest(to: client) }
        #expect(output?.code == .decoding)
        #expect(output?.details?.contains("cannot be read as CSV") == true)
        #expect(transport.sent.isEmpty)
    }

    @Test("JSON accepts a bare number, as input and output")
    func scalar() async throws {
        let client = Bed.client(Bed.Service(), ScriptedTransport([.respond(200, body: "42")]))
        #expect(try await Echo<Int>().makeRequest(to: client, with: 41) == 42)
    }
}

private struct Nothing: Codable, Sendable {}
