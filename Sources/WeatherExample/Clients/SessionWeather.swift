// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    // On Linux, Foundation has URLSession in a separate module.
    internal import FoundationNetworking
#endif

/// Plain URLSession code.
struct SessionWeather: Sendable {
    let session: URLSession
    let pipeline: Pipeline

    func readBefore(_ request: URLRequest) async throws -> Reading {
        let (data, response) = try await session.data(for: request)
        return Reading(data, response: response)
    }

    func readAfter(_ request: URLRequest) async throws -> Reading {
        let (data, response) = try await pipeline.data(for: request)
        return Reading(data, response: response)
    }
}
