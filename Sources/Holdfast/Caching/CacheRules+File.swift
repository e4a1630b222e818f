// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics

extension CacheRules {
    /// Reads rules from a JSON file, as `CacheRules(json:)` reads its contents.
    ///
    /// - Parameter file: a file URL; 1 MiB at most.
    /// - Throws: `CacheRulesError` with line and column, and Foundation's error if the file cannot be read.
    public init(contentsOf file: URL) throws {
        let handle = try FileHandle(forReadingFrom: file)
        defer { try? handle.close() }
        // One byte more than is allowed shows that there is more.
        try self.init(json: handle.read(upToCount: CacheRules.longestText + 1) ?? Data())
    }
}
