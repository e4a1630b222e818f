// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

import Foundation

/// A file of cases, in the order in which they are to run.
struct CaseFile: Sendable {
    let cases: [CacheCase]

    /// Reads files, each a list of suites with their tests; a case may build upon one of an earlier file.
    init(contentsOf urls: URL...) throws {
        try self.init(contentsOf: urls)
    }

    /// Reads files, as the other initializer does.
    init(contentsOf urls: [URL]) throws {
        let suites = try urls.flatMap { try JSONDecoder().decode([JSONValue].self, from: Data(contentsOf: $0)) }
        cases = suites.flatMap { suite in
            (suite["tests"]?.elements ?? []).compactMap { CacheCase($0, suite: suite["id"]?.text ?? "") }
        }
    }

    /// The public cases: the file that CACHE_TESTS_JSON names, else the one that lies beside the package; nil without one.
    static let publicURL: URL? = {
        let named = ProcessInfo.processInfo.environment["CACHE_TESTS_JSON"].map { URL(filePath: $0) }
        let root = URL(filePath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let url = named ?? root.deletingLastPathComponent().appending(path: "shared/cache-tests/open.json")
        return FileManager.default.isReadableFile(atPath: url.path) ? url : nil
    }()

    /// The cases written for this project, which every clone has: those that others build upon first.
    static let ownURLs = [
        "own", "own-freshness", "own-parsing", "own-directives", "own-vary", "own-conditions", "own-fields",
        "own-methods", "own-partial", "own-others", "own-targeted",
    ]
    .map { Bundle.module.bundleURL.appending(path: "Fixtures/\($0).json") }

    /// What a person asked for by environment: cases to run, and whether each miss is told at length.
    static let only: Set<String>? = ProcessInfo.processInfo.environment["HOLDFAST_CONFORMANCE_ONLY"].map { list in
        Set(list.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) })
    }
    static let isVerbose = ProcessInfo.processInfo.environment["HOLDFAST_CONFORMANCE_VERBOSE"] == "1"
}

/// One case: requests to one fresh target URI, and what they must get.
struct CacheCase: Sendable {
    enum Kind: String, Sendable, CaseIterable {
        /// The cache must do so.
        case required
        /// A good cache does so.
        case optimal
        /// A question; both answers are legal.
        case check
    }

    let id: String
    let suite: String
    let name: String
    let kind: Kind
    let dependencies: [String]
    let isForPrivateCaches: Bool
    let isForTargetedFields: Bool
    let isSkippedByBrowsers: Bool
    let requests: [CaseRequest]

    init?(_ json: JSONValue, suite: String) {
        guard let id = json["id"]?.text, let requests = json["requests"]?.elements else { return nil }
        self.id = id
        self.suite = suite
        name = json["name"]?.text ?? ""
        kind = json["kind"]?.text.flatMap { Kind(rawValue: $0) } ?? .required
        dependencies = json["depends_on"]?.texts ?? []
        isForPrivateCaches = json["browser_only"]?.isTrue ?? false
        isForTargetedFields = json["cdn_only"]?.isTrue ?? false
        isSkippedByBrowsers = json["browser_skip"]?.isTrue ?? false
        self.requests = requests.map { CaseRequest($0) }
    }

    /// Whether the case is one of the mode's.
    func belongs(to mode: ConformanceMode) -> Bool {
        switch mode {
        case .shared: !isForPrivateCaches
        case .private:
            !isForTargetedFields && !(isSkippedByBrowsers && name.lowercased().contains("shared"))
        }
    }
}

/// In which of its two modes the cache is run.
enum ConformanceMode: String, Sendable, CaseIterable {
    case `private`
    case shared
}
