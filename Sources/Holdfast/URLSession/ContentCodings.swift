// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// Which content codings URLSession undoes by itself, leaving Content-Encoding and Content-Length as they came.
enum ContentCodings {
    #if canImport(Darwin)
        private static let known: Set<String> = ["gzip", "x-gzip", "deflate", "br"]
    #else
        private static let known: Set<String> = ["gzip", "x-gzip", "deflate", "br", "zstd"]
    #endif

    /// Whether a response with these values of Content-Encoding (RFC 9110 §8.4) is handed over decoded.
    ///
    /// False where nothing was coded, and where a coding is unknown: then the platform has not touched the content.
    static func areUndone(_ values: [String]) -> Bool {
        var isCoded = false
        for value in values {
            for part in value.split(separator: ",") {
                let coding = part.filter { $0 != " " && $0 != "\t" }.lowercased()
                if coding.isEmpty || coding == "identity" { continue }
                guard known.contains(coding) else { return false }
                isCoded = true
            }
        }
        return isCoded
    }
}
