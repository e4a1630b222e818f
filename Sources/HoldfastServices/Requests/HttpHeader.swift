// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastSemantics

/// The header fields of a service or a request.
public typealias HttpHeader = HeaderFields

/// The method of a request.
public typealias HttpMethod = RequestMethod

extension HeaderFields {
    /// The fields of both; if both have a field (ignoring case), the right one's lines replace the left one's.
    public static func + (left: HeaderFields, right: HeaderFields) -> HeaderFields {
        left.merging(right)
    }
}
