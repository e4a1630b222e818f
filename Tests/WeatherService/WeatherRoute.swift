// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastTesting

/// What a request asks for.
enum WeatherRoute: Sendable, Equatable {
    case stations
    case current(station: Int)
    case forecast(station: Int, days: Int)
    case report(station: Int)
    case ledger
    case unknown

    /// The route of a request.
    init(_ request: LoopbackRequest) {
        let path = request.path.split(separator: "/").map(String.init)
        let query = WeatherRoute.query(of: request.target)
        let station = path.count > 1 ? Int(path[1]).flatMap { WeatherRoute.valid(station: $0) } : nil
        switch (request.method, path.first, path.count) {
        case ("GET", "ledger", 1): self = .ledger
        case ("GET", "stations", 1): self = .stations
        case ("GET", "stations", 3) where path[2] == "current":
            self = station.map { .current(station: $0) } ?? .unknown
        case ("GET", "stations", 3) where path[2] == "forecast":
            let days = query["days"].flatMap { Int($0) } ?? 3
            self = (1...14).contains(days) ? station.map { .forecast(station: $0, days: days) } ?? .unknown : .unknown
        case ("POST", "reports", 1):
            let named = query["station"].flatMap { Int($0) }.flatMap { WeatherRoute.valid(station: $0) }
            self = named.map { .report(station: $0) } ?? .unknown
        default: self = .unknown
        }
    }

    private static func valid(station: Int) -> Int? {
        WeatherContent.stations.indices.contains(station) ? station : nil
    }

    private static func query(of target: String) -> [String: String] {
        var query: [String: String] = [:]
        guard let mark = target.firstIndex(of: "?") else { return query }
        for pair in target[target.index(after: mark)...].split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            query[String(parts[0])] = parts.count > 1 ? String(parts[1]) : ""
        }
        return query
    }
}
