// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if AsyncHTTPClient
    internal import AsyncHTTPClient
    internal import Foundation
    internal import Holdfast
    internal import HoldfastAsyncHTTPClient
    internal import NIOCore
    internal import NIOHTTP1

    /// Server code, using AsyncHTTPClient.
    struct AsyncClientWeather: Sendable {
        let client = HTTPClient.shared
        let holdfastClient: HoldfastHTTPClient

        init(cache: HTTPCache) {
            holdfastClient = HTTPClient.shared.holdfast(cache: cache, retrierFactory: .default)
        }

        func readBefore(_ question: Question, at url: URL, key: String) async throws -> Reading {
            let request = question.clientRequest(to: url, key: key)
            let response = try await client.execute(request, timeout: .seconds(30))
            return try await Reading(response)
        }

        func readAfter(_ question: Question, at url: URL, key: String) async throws -> Reading {
            let request = question.clientRequest(to: url, key: key)
            let response = try await holdfastClient.execute(request, timeout: .seconds(30))
            return try await Reading(response)
        }
    }

    extension Reading {
        init(_ response: HTTPClientResponse) async throws {
            let body = try await response.body.collect(upTo: 1 << 20)
            self.init(Data(body.readableBytesView), status: Int(response.status.code))
        }
    }

    extension Question {
        func clientRequest(to url: URL, key: String) -> HTTPClientRequest {
            var request = HTTPClientRequest(url: url.absoluteString + target)
            request.headers.add(name: "Accept-Language", value: language)
            request.headers.add(name: "X-API-Key", value: key)
            return request
        }
    }
#endif
