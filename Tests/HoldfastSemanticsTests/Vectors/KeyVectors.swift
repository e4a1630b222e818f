// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import HoldfastSemantics
import Testing

struct QueryVector: Decodable, Sendable, CustomTestStringConvertible {
    var id: String
    var input: String
    var options: Options
    var canonical: String

    struct Options: Decodable, Sendable {
        var sort: Bool?
        var ignore: [String]?
        var only: [String]?
    }

    var queryOptions: QueryOptions {
        QueryOptions(
            sortsNames: options.sort ?? false,
            ignoredNames: options.ignore ?? [],
            allowedNames: options.only
        )
    }

    var testDescription: String { "\(id) \(input)" }
}

struct NoVarySearchVector: Decodable, Sendable, CustomTestStringConvertible {
    var id: String
    var fieldValue: String?
    var one: String
    var other: String
    var isEquivalent: Bool

    enum CodingKeys: String, CodingKey {
        case id
        case fieldValue = "no_vary_search"
        case one = "a"
        case other = "b"
        case isEquivalent = "equivalent"
    }

    var testDescription: String { "\(id) \(fieldValue ?? "absent")" }
}

struct ContentTypeVector: Decodable, Sendable, CustomTestStringConvertible {
    var id: String
    var input: String
    var canonical: String

    var testDescription: String { "\(id) \(input)" }
}

struct BodyVector: Decodable, Sendable, CustomTestStringConvertible {
    var id: String
    var body: String
    var normalizer: String
    var canonical: String
    var isFallback: Bool
    var digest: String

    enum CodingKeys: String, CodingKey {
        case id, body, normalizer, canonical
        case isFallback = "fallback_raw"
        case digest = "sha256"
    }

    var testDescription: String { "\(id) \(normalizer)" }
}
