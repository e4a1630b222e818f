// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
internal import Holdfast

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// How an API divides a result into pages, and how the next one is requested.
public struct Pagination<Page: Sendable>: Sendable {
    /// How a page is requested.
    public struct Step: Sendable, Hashable {
        enum Form: Sendable, Hashable {
            case query(HttpQuery)
            case url(URL)
        }

        let form: Form

        /// The step as its request says it: without what of a URL is not sent, and in one spelling.
        var sent: Step {
            guard case .url(let url) = form, let target = try? TargetURI(mapping: url.absoluteString),
                let spelled = URL(string: target.description)
            else { return self }
            return .url(spelled)
        }

        /// With query arguments, added to those of the request; they replace its own of the same name.
        public static func query(_ query: HttpQuery) -> Step { Step(form: .query(query)) }

        /// With a URL of the same origin, which replaces the request's URL, route and query. Another origin is rejected when
        /// the page is requested, since the request carries the service's credentials.
        public static func url(_ url: URL) -> Step { Step(form: .url(url)) }
    }

    /// How the first page is requested.
    public let first: Step
    /// How the page after one is asked for; nil: it was the last.
    let next: @Sendable (_ page: DecodedResponse<Page>, _ number: Int) throws -> Step?

    /// A custom pagination.
    ///
    /// - Parameters:
    ///   - first: how the first page is requested.
    ///   - next: how the page after a given one is requested; nil if that was the last. `number` counts pages from 0.
    public init(
        first: Step = .query([:]),
        next: @escaping @Sendable (_ page: DecodedResponse<Page>, _ number: Int) throws -> Step?
    ) {
        self.first = first
        self.next = next
    }

    /// Pages by number, until `isLast` returns true.
    ///
    /// - Parameters:
    ///   - name: the argument for the page's number; `page` by default.
    ///   - chunkName: the argument for the number of elements in a page; `chunk` by default.
    ///   - chunk: the number of elements in a page; nil, the default: the argument is not sent, and the API decides.
    ///   - firstPage: the number of the first page; 1 by default.
    ///   - isLast: whether this page, with this number, is the last.
    public static func numbered(
        _ name: String = "page",
        chunkName: String = "chunk",
        chunk: Int? = nil,
        from firstPage: Int = 1,
        isLast: @escaping @Sendable (_ page: Page, _ number: Int) -> Bool
    ) -> Pagination {
        let step: @Sendable (Int) -> Step = { number in
            let (page, _) = firstPage.addingReportingOverflow(number)
            return .query(HttpQuery([name: page]) + (chunk.map { HttpQuery([chunkName: $0]) } ?? [:]))
        }
        return Pagination(first: step(0)) { page, number in
            isLast(page.value, number) ? nil : step(number + 1)
        }
    }

    /// Pages by a cursor that each page gives for the next.
    ///
    /// - Parameters:
    ///   - name: the argument for the cursor; `cursor` by default.
    ///   - cursor: the cursor of the page after this one; nil or empty if this was the last.
    public static func cursor(
        _ name: String = "cursor",
        of cursor: @escaping @Sendable (_ page: Page) -> String?
    ) -> Pagination {
        Pagination { page, _ in
            guard let word = cursor(page.value), !word.isEmpty else { return nil }
            return .query([name: word])
        }
    }

    /// Pages by the link to the next one in the Link field of each response (RFC 8288, relation `next`).
    public static var links: Pagination {
        Pagination { page, _ in
            guard let base = page.response.url ?? page.urlRequest.url else { return nil }
            let lines = page.response.fields.values(of: "Link")
            return WebLink.target(of: "next", in: lines, base: base).map { .url($0) }
        }
    }
}

extension Pagination where Page: NumberedPage {
    /// Pages by number, until a page says that it is the last, or until as many pages were read as it says there are.
    ///
    /// - Parameters:
    ///   - name: the argument for the page's number; `page` by default.
    ///   - chunkName: the argument for the number of elements in a page; `chunk` by default.
    ///   - chunk: the number of elements in a page; nil, the default: the argument is not sent, and the API decides.
    ///   - firstPage: the number of the first page; 1 by default.
    public static func numbered(
        _ name: String = "page",
        chunkName: String = "chunk",
        chunk: Int? = nil,
        from firstPage: Int = 1
    ) -> Pagination {
        .numbered(name, chunkName: chunkName, chunk: chunk, from: firstPage) { page, number in
            page.isLastPage || number + 1 >= page.totalPages
        }
    }
}

/// Reads Link fields (RFC 8288 §3).
enum WebLink {
    /// The first link of a relation; nil where there is none. A link about another context (`anchor`) does not count.
    ///
    /// - Parameters:
    ///   - relation: the relation type, in lower case.
    ///   - lines: the values of the Link lines.
    ///   - base: what relative references are resolved against.
    static func target(of relation: String, in lines: [String], base: URL) -> URL? {
        for line in lines {
            var scanner = FieldScanner(line)
            while let link = next(in: &scanner) {
                let words = link.parameters["rel"]?.lowercased().split(separator: " ") ?? []
                guard words.contains(where: { $0 == relation }), link.parameters["anchor"] == nil else { continue }
                return URL(string: link.target, relativeTo: base)?.absoluteURL
            }
        }
        return nil
    }

    /// The next link; nil at the end of the line, and where it is malformed.
    private static func next(in scanner: inout FieldScanner) -> (target: String, parameters: [String: String])? {
        repeat { scanner.skipWhitespace() } while scanner.consume(UInt8(ascii: ","))
        guard scanner.consume(UInt8(ascii: "<")) else { return nil }
        let target = scanner.text(upTo: UInt8(ascii: ">"))
        var parameters: [String: String] = [:]
        for member in FieldScanner.members(of: scanner.text(upTo: UInt8(ascii: ",")), separator: UInt8(ascii: ";")) {
            var part = FieldScanner(member)
            let name = part.text(upTo: UInt8(ascii: "=")).lowercased()
            part.skipWhitespace()
            let value = part.quotedString() ?? part.text(upTo: UInt8(ascii: ";"))
            // Of several parameters of one name the first counts (RFC 8288 §3.3).
            if parameters[name] == nil { parameters[name] = value }
        }
        return (target, parameters)
    }
}

extension URL {
    /// Whether scheme, host and port are the same (RFC 9110 §4.3.1).
    func isSameOrigin(as other: URL) -> Bool {
        guard let mine = try? TargetURI(absoluteString), let others = try? TargetURI(other.absoluteString) else {
            return false
        }
        return mine.isSameOrigin(as: others)
    }
}
