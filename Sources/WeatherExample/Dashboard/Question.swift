// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation

#if canImport(FoundationNetworking)
    // Foundation on Linux keeps URLRequest in a module of its own.
    internal import FoundationNetworking
#endif

/// One question of the dashboard.
struct Question: Sendable, Hashable {
    /// What is asked for.
    enum Subject: Sendable, Hashable {
        case stations
        case current(station: Int)
        case forecast(station: Int, days: Int)
    }

    /// What is asked for.
    let subject: Subject
    /// The language of who asks.
    let language: String

    /// Path and query.
    var target: String {
        switch subject {
        case .stations: "/stations"
        case .current(let station): "/stations/\(station)/current"
        case .forecast(let station, let days): "/stations/\(station)/forecast?days=\(days)"
        }
    }

    /// The question as a request to the service at `url`, in the name of the client that `key` stands for.
    func request(to url: URL, key: String) -> URLRequest {
        var request = URLRequest(url: URL(string: url.absoluteString + target) ?? url)
        request.setValue(language, forHTTPHeaderField: "Accept-Language")
        request.setValue(key, forHTTPHeaderField: "X-API-Key")
        return request
    }
}
