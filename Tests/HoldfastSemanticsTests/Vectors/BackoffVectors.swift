// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Testing

/// The vectors of waiting, budgets, pacing and hedging; a file may hold any part of the groups, and groups of unknown names.
struct BackoffVectors: Decodable, Sendable {
    var stateless: [Series]
    var stateful: [Sequence]
    var budgets: [Trace]
    var rateLimiter: [Pace]
    var hedging: [Claim]
    var analytic: [Claim]

    enum CodingKeys: String, CodingKey {
        case stateless, stateful, budgets, hedging, analytic
        case rateLimiter = "rate_limiter"
    }

    init(from decoder: any Decoder) throws {
        let groups = try decoder.container(keyedBy: CodingKeys.self)
        stateless = try groups.decodeIfPresent([Series].self, forKey: .stateless) ?? []
        stateful = try groups.decodeIfPresent([Sequence].self, forKey: .stateful) ?? []
        budgets = try groups.decodeIfPresent([Trace].self, forKey: .budgets) ?? []
        rateLimiter = try groups.decodeIfPresent([Pace].self, forKey: .rateLimiter) ?? []
        hedging = try groups.decodeIfPresent([Claim].self, forKey: .hedging) ?? []
        analytic = try groups.decodeIfPresent([Claim].self, forKey: .analytic) ?? []
    }

    /// Delays of single retries, each a function of the retry's number and a sample.
    struct Series: Decodable, Sendable, CustomTestStringConvertible {
        var id: String
        var params: VectorParameters
        var firstRetry: Int
        var quantum: Double?
        var cases: [Case]

        enum CodingKeys: String, CodingKey {
            case id, params, cases
            case firstRetry = "n_base"
            case quantum = "quantum_s"
        }

        var testDescription: String { id }
    }

    struct Case: Decodable, Sendable {
        var retry: Int
        var expected: Double?
        var sample: Double?

        enum CodingKeys: String, CodingKey {
            case retry = "n"
            case expected = "expected_s"
            case sample = "u"
        }
    }

    /// The delays of one call, where each depends on those before it.
    struct Sequence: Decodable, Sendable, CustomTestStringConvertible {
        var id: String
        var params: VectorParameters
        var samples: [Double]
        var expected: [Double]
        var quantum: Double?

        enum CodingKeys: String, CodingKey {
            case id, params
            case samples = "u"
            case expected = "expected_s"
            case quantum = "quantum_s"
        }

        var testDescription: String { id }
    }

    /// What becomes of a budget: events in order, or figures that follow from its parameters.
    struct Trace: Decodable, Sendable, CustomTestStringConvertible {
        var id: String
        var params: VectorParameters
        var trace: [Step]?
        var expected: VectorParameters?

        var testDescription: String { id }
    }

    struct Step: Decodable, Sendable {
        var event: String?
        var granted: Bool?
        var available: Double?
        var outcome: String?
        var tokenCount: Double?
        var retriesAllowed: Bool?

        enum CodingKeys: String, CodingKey {
            case event, granted, available, outcome
            case tokenCount = "token_count"
            case retriesAllowed = "retries_allowed"
        }
    }

    /// Sending rates over time.
    struct Pace: Decodable, Sendable, CustomTestStringConvertible {
        var id: String
        var params: VectorParameters
        var cases: [Moment]

        var testDescription: String { id }
    }

    struct Moment: Decodable, Sendable {
        var time: Double
        var isThrottled: Bool?
        var rate: Double?
        var measuredRate: Double?
        var fillRate: Double?

        enum CodingKeys: String, CodingKey {
            case time = "t"
            case isThrottled = "throttled"
            case rate = "expected_rate"
            case measuredRate = "measured_tx_rate"
            case fillRate = "fill_rate"
        }
    }

    /// Figures that follow from parameters.
    struct Claim: Decodable, Sendable, CustomTestStringConvertible {
        var id: String
        var params: VectorParameters
        var expected: VectorParameters

        var testDescription: String { "\(id) \(params)" }
    }
}

/// Named numbers and lists of numbers; anything else under a name counts as absent.
struct VectorParameters: Decodable, Sendable, CustomStringConvertible {
    private var numbers: [String: [Double]] = [:]

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Name.self)
        for name in container.allKeys {
            if let number = try? container.decode(Double.self, forKey: name) {
                numbers[name.stringValue] = [number]
            } else if let list = try? container.decode([Double].self, forKey: name) {
                numbers[name.stringValue] = list
            }
        }
    }

    /// The number under the first of the names that has one.
    subscript(names: String...) -> Double? {
        names.lazy.compactMap { numbers[$0]?.first }.first
    }

    func list(_ name: String) -> [Double]? { numbers[name] }

    var description: String {
        numbers.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.map(\.description).joined(separator: ","))" }
            .joined(separator: ", ")
    }

    private struct Name: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }

        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
