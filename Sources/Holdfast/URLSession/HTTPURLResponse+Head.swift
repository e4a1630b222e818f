// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

internal import Foundation
internal import HoldfastSemantics

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension HTTPURLResponse {
    /// Status and fields; lines of one name have been joined by Foundation.
    var head: ResponseHead {
        ResponseHead(
            status: StatusCode(statusCode),
            fields: HeaderFields(SessionFields.texts(allHeaderFields))
        )
    }

    /// The length of the content as Content-Length says, if it does.
    var contentLength: Int? {
        guard let length = Int(exactly: expectedContentLength), length >= 0 else { return nil }
        return length
    }
}

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
