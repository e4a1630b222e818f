// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation
import HoldfastStorage
import HoldfastTesting
import Synchronization
import Testing

@testable import Holdfast

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The calls of URLSession that a pipeline has too, brought to one shape.
enum SessionCall: String, CaseIterable, Sendable {
    case data, upload, uploadFile, download, bytes

    static let content = Data("content".utf8)

    var method: String { self == .upload || self == .uploadFile ? "PUT" : "GET" }

    /// Makes the call on a pipeline; what it downloads goes to `folder` and is read from there.
    func load(_ request: URLRequest, _ pipeline: Pipeline, _ folder: Folder) async throws -> (Data, HTTPURLResponse) {
        let data: Data
        let response: URLResponse
        switch self {
        case .data: (data, response) = try await pipeline.data(for: request)
        case .upload: (data, response) = try await pipeline.upload(for: request, from: SessionCall.content)
        case .uploadFile:
            (data, response) = try await pipeline.upload(for: request, fromFile: try folder.file(SessionCall.content))
        case .download:
            let (file, head) = try await pipeline.download(for: request, into: folder.url)
            (data, response) = (try Data(contentsOf: file), head)
            try FileManager.default.removeItem(at: file)
        case .bytes:
            let (bytes, head) = try await pipeline.bytes(for: request)
            (data, response) = (Data(try await bytes.all()), head)
        }
        return (data, try #require(response as? HTTPURLResponse))
    }

    /// Makes the same call on URLSession, or the nearest where Foundation on Linux has none.
    func load(_ request: URLRequest, _ session: URLSession, _ folder: Folder) async throws -> (Data, HTTPURLResponse) {
        let data: Data
        let response: URLResponse
        switch self {
        case .data, .bytes: (data, response) = try await session.data(for: request)
        case .upload: (data, response) = try await session.upload(for: request, from: SessionCall.content)
        case .uploadFile:
            (data, response) = try await session.upload(for: request, fromFile: try folder.file(SessionCall.content))
        case .download:
            let (file, head) = try await session.download(for: request)
            (data, response) = (try Data(contentsOf: file), head)
            try FileManager.default.removeItem(at: file)
        }
        return (data, try #require(response as? HTTPURLResponse))
    }
}

/// A folder of its own for a test, removed with its last reference.
final class Folder: Sendable {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("holdfast-test-\(UUID().uuidString)")

    init() throws {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// A file with this content.
    func file(_ content: Data) throws -> URL {
        let file = url.appendingPathComponent("content")
        try content.write(to: file)
        return file
    }

    /// The names of what was downloaded.
    var downloads: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: url.path).filter { $0 != "content" } }
    }
}

extension AsyncSequence {
    /// All elements.
    func all() async throws -> [Element] {
        var all: [Element] = []
        for try await element in self { all.append(element) }
        return all
    }
}

extension URLRequest {
    /// A request for a path of `server`.
    static func to(_ server: LoopbackServer, _ path: String = "/", _ method: String = "GET") -> URLRequest {
        var request = URLRequest(url: server.url(path))
        request.httpMethod = method
        return request
    }
}
