// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import HoldfastSemantics

extension CacheRules {
    /// Reads rules from a JSON file, as `CacheRules(json:)` reads its contents.
    ///
    /// - Parameter file: a file URL; 1 MiB at most.
    /// - Throws: `CacheRulesError`: with line and column, or with the path of a file that cannot be read.
    public init(contentsOf file: URL) throws {
        let json: Data?
        do {
            let handle = try FileHandle(forReadingFrom: file)
            defer { try? handle.close() }
            // One byte more than is allowed shows that there is more.
            json = try handle.read(upToCount: CacheRules.longestText + 1)
        } catch {
            throw CacheRulesError("The rules in \(file.path) cannot be read. \(error.localizedDescription)")
        }
        try self.init(json: json ?? Data())
    }
}
