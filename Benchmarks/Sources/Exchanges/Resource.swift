// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
public import HoldfastSemantics
public import HoldfastStorage

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A resource that benchmarks request. Its number determines its URL, response and body.
///
/// The request is a GET with 8 header fields for an https URL of 64 bytes; the response has typical header fields and is fresh
/// for a day.
public struct Resource: Sendable, Hashable {
    /// The number of the resource; 0 ... 999,999,999.
    public let number: Int
    /// The number of bytes in its body.
    public let length: Int

    /// Creates the resource with this number.
    public init(_ number: Int, length: Int) {
        (self.number, self.length) = (number, length)
    }

    /// Creates the resource that a ``request`` is for; nil for any other request.
    public init?(of request: URLRequest, length: Int) {
        guard let text = request.url?.absoluteString, text.hasPrefix(Self.beginning),
            let number = Int(text.dropFirst(Self.beginning.count).prefix(9))
        else { return nil }
        self.init(number, length: length)
    }

    /// Its URL.
    public var url: String {
        let digits = String(number)
        return Self.beginning + String(repeating: "0", count: max(0, 9 - digits.count)) + digits + "?fields=full"
    }

    /// The request for it; never nil if the URL is valid.
    public var request: URLRequest? {
        guard let url = URL(string: url) else { return nil }
        var request = URLRequest(url: url)
        for (name, value) in Self.requestFields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    /// The origin's response to the request.
    ///
    /// - Parameter now: the value of its Date field.
    public func response(now: Timestamp) -> Response {
        Response(status: .ok, fields: fields(now: now), body: ResponseBody(ByteChunk(body)), url: URL(string: url))
    }

    /// The header fields of the response.
    public func fields(now: Timestamp) -> HeaderFields {
        let date = HTTPDate(now).description
        return [
            .date: date, .cacheControl: "public, max-age=86400", .eTag: "\"5f3b-\(number)\"",
            .lastModified: "Tue, 04 Nov 2025 08:12:31 GMT", .contentType: "application/json; charset=utf-8",
            .contentLength: String(length), .vary: "Accept-Encoding", .server: "example",
        ]
    }

    /// The body: the bytes of its number, repeated.
    public var body: [UInt8] {
        (0..<length).map { stamp($0) }
    }

    /// Whether the bytes are its body, judged by the length and the first and last byte.
    public func holds(_ bytes: ByteChunk) -> Bool {
        bytes.count == length && bytes[0] == stamp(0) && bytes[length - 1] == stamp(length - 1)
    }

    /// Whether the bytes are its body, judged by the length and the first and last byte.
    public func holds(_ bytes: Data) -> Bool {
        bytes.count == length && bytes[bytes.startIndex] == stamp(0)
            && bytes[bytes.endIndex - 1] == stamp(length - 1)
    }

    private func stamp(_ place: Int) -> UInt8 { UInt8(truncatingIfNeeded: number >> (8 * (place % 4))) }

    /// The header fields of every request, like those of an app's client.
    public static let requestFields: [(String, String)] = [
        ("Accept", "application/json"), ("Accept-Encoding", "gzip, deflate, br"),
        ("Accept-Language", "en-GB,en;q=0.9,de;q=0.6"), ("User-Agent", "Catalogue/4.2 (iPhone; iOS 18.1)"),
        ("Referer", "https://www.example.com/catalogue"), ("Priority", "u=3"),
        ("X-Client-Version", "4.2.1"), ("X-Request-Source", "list"),
    ]

    private static let beginning = "https://api.example.com/v2/catalogue/items/"
}
