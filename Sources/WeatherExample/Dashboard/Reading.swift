// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    // Foundation on Linux keeps URLResponse in a module of its own.
    internal import FoundationNetworking
#endif

/// What the dashboard gets for a question.
struct Reading: Sendable, Equatable {
    /// The status; 0 where there was none.
    let status: Int
    /// The content.
    let data: Data

    init(_ data: Data, status: Int) {
        self.data = data
        self.status = status
    }

    init(_ data: Data, _ response: URLResponse) {
        self.init(data, status: (response as? HTTPURLResponse)?.statusCode ?? 0)
    }
}
