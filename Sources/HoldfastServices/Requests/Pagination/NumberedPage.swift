// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

/// One page of several, that knows its number and how many there are.
public protocol NumberedPage: Sendable {
    /// Its number, as the API counts.
    var page: Int { get }
    /// How many pages there are; 0 where there is nothing at all.
    var totalPages: Int { get }
    /// Whether no page follows; by default where `page` is not less than `totalPages`, which is right where the first page is 1.
    var isLastPage: Bool { get }
}

extension NumberedPage {
    public var isLastPage: Bool { page >= totalPages }
}

/// A page as many APIs send it: `{"page": 1, "total_pages": 3, "data": […]}`.
public struct PaginatedData<Element: Sendable>: NumberedPage {
    public let page: Int
    public let totalPages: Int
    /// What stands on the page.
    public let data: [Element]

    /// A page.
    public init(page: Int, totalPages: Int, data: [Element]) {
        self.page = page
        self.totalPages = totalPages
        self.data = data
    }

    /// How many elements stand on the page.
    public var count: Int { data.count }
}

extension PaginatedData: Decodable where Element: Decodable {}
extension PaginatedData: Encodable where Element: Encodable {}
extension PaginatedData: Equatable where Element: Equatable {}
extension PaginatedData: Hashable where Element: Hashable {}
