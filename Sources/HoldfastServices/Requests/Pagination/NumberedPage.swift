// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// One page of several, which knows its number and how many pages there are.
public protocol NumberedPage: Sendable {
    /// The page's number, as the API counts.
    var page: Int { get }
    /// How many pages there are; 0 if there is no result at all.
    var totalPages: Int { get }
    /// Whether this is the last page; by default true if `page` is not less than `totalPages`, which is right if the first page
    /// is 1.
    var isLastPage: Bool { get }
}

extension NumberedPage {
    public var isLastPage: Bool { page >= totalPages }
}

/// A page as many APIs send it: `{"page": 1, "totalPages": 3, "data": […]}`.
///
/// `total_pages` is read as well. For an API with other names, set them in the decoder:
///
/// ```swift
/// decoder.userInfo[.paginatedDataKeys] = PaginatedDataKeys(page: "current", totalPages: "pages", data: "items")
/// ```
public struct PaginatedData<Element: Sendable>: NumberedPage {
    public let page: Int
    public let totalPages: Int
    /// The elements of the page.
    public let data: [Element]

    /// A page.
    public init(page: Int, totalPages: Int, data: [Element]) {
        self.page = page
        self.totalPages = totalPages
        self.data = data
    }

    /// How many elements the page has.
    public var count: Int { data.count }
}

/// The names of a ``PaginatedData`` in JSON, which a decoder or encoder finds in its `userInfo` under
/// `CodingUserInfoKey.paginatedDataKeys`, as they are after its key strategy.
public struct PaginatedDataKeys: Sendable, Hashable {
    /// The name of the page's number.
    public var page: String
    /// The name of the number of pages.
    public var totalPages: String
    /// The name of the list of elements.
    public var data: String

    /// Names; `page`, `totalPages` and `data` by default.
    public init(page: String = "page", totalPages: String = "totalPages", data: String = "data") {
        self.page = page
        self.totalPages = totalPages
        self.data = data
    }

    fileprivate init(_ userInfo: [CodingUserInfoKey: Any]) {
        self = userInfo[.paginatedDataKeys] as? PaginatedDataKeys ?? PaginatedDataKeys()
    }
}

extension CodingUserInfoKey {
    /// The `userInfo` key of the ``PaginatedDataKeys``.
    public static let paginatedDataKeys: CodingUserInfoKey = {
        guard let key = CodingUserInfoKey(rawValue: "holdfast.paginated-data-keys") else {
            preconditionFailure("Foundation makes a key of every text.")
        }
        return key
    }()
}

extension PaginatedData: Decodable where Element: Decodable {
    public init(from decoder: any Decoder) throws {
        let keys = PaginatedDataKeys(decoder.userInfo)
        let container = try decoder.container(keyedBy: KeyValueKey.self)
        page = try container.decode(Int.self, forKey: KeyValueKey(stringValue: keys.page))
        data = try container.decode([Element].self, forKey: KeyValueKey(stringValue: keys.data))
        let inSnakeCase = KeyValueKey(stringValue: "total_pages")
        let totalKey = KeyValueKey(stringValue: keys.totalPages)
        let isInSnakeCase = !container.contains(totalKey) && container.contains(inSnakeCase)
        totalPages = try container.decode(Int.self, forKey: isInSnakeCase ? inSnakeCase : totalKey)
    }
}

extension PaginatedData: Encodable where Element: Encodable {
    public func encode(to encoder: any Encoder) throws {
        let keys = PaginatedDataKeys(encoder.userInfo)
        var container = encoder.container(keyedBy: KeyValueKey.self)
        try container.encode(page, forKey: KeyValueKey(stringValue: keys.page))
        try container.encode(totalPages, forKey: KeyValueKey(stringValue: keys.totalPages))
        try container.encode(data, forKey: KeyValueKey(stringValue: keys.data))
    }
}

extension PaginatedData: Equatable where Element: Equatable {}
extension PaginatedData: Hashable where Element: Hashable {}
