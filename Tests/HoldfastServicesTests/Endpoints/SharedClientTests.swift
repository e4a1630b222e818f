// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import Holdfast
import HoldfastServices
import HoldfastTesting
import Testing

private struct Name: OutEndpoint {
    typealias Service = EndpointBed.Service
    typealias Output = String
    let path = "name"
}

private struct OtherService: WebService {
    static let shared = ServiceClient(OtherService(), transport: ScriptedTransport([.respond(body: "other")]))
    var baseURL: URL { URL(filePath: "/") }
    var apiUrl: any UrlConvertible { "other.example.com" }
}

private struct OtherName: OutEndpoint {
    typealias Service = OtherService
    typealias Output = String
    let path = "name"
}

@Suite("Shared clients", .timeLimit(.minutes(20)))
struct SharedClientTests {
    private typealias Bed = EndpointBed

    private func client(_ answer: String) -> ServiceClient<Bed.Service> {
        Bed.client(Bed.Service(), ScriptedTransport([.respond(body: answer)], repeatsLastStep: true))
    }

    @Test("A call without a client goes to the shared one, or to its replacement in tests")
    func override() async throws {
        let answers = try await Bed.Service.withShared(client("outer")) {
            var answers = [try await Name().makeRequest()]
            answers += try await Bed.Service.withShared(client("inner")) {
                [try await Name().makeRequest(), try await Name().makeRequest(to: client("own"))]
            }
            // Another service keeps its own.
            return answers + [try await Name().makeRequest(), try await OtherName().makeRequest()]
        }
        #expect(answers == ["outer", "inner", "own", "outer", "other"])
        // The shared one has no script.
        let error = await endpointError { _ = try await Name().makeRequest() }
        #expect((error?.cause as? ServiceError)?.code == .unsupported)
    }

    @Test("Concurrent tasks do not see each other's clients")
    func isolation() async throws {
        let answers = try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for number in 0..<32 {
                group.addTask {
                    try await Bed.Service.withShared(client("\(number)")) {
                        await Task.yield()
                        return (number, try await Name().makeRequest())
                    }
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(answers == Dictionary(uniqueKeysWithValues: (0..<32).map { ($0, "\($0)") }))
    }
}
