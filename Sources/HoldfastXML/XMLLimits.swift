// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    /// How much XML is accepted; more is rejected before a parser sees it.
    ///
    /// The platforms' parsers have no such limits: a document with a hundred thousand nested elements stops a process, and one
    /// with many attributes or references keeps it busy for a time that grows with the square of their number.
    public struct XMLLimits: Sendable, Hashable {
        /// The most bytes of a document; 16 MiB by default.
        public var bytes = 16 << 20
        /// The most elements nested in each other, 1 to 256; 64 by default.
        public var depth = 64
        /// The most elements and attributes together; 200 000 by default.
        public var nodes = 200_000
        /// The most attributes of one element; 256 by default.
        public var attributes = 256

        /// Creates the default limits.
        public init() {}

        /// No limits, except for a depth of at most 256; for encoded documents.
        static let unlimited: XMLLimits = {
            var limits = XMLLimits()
            limits.bytes = .max
            limits.depth = 256
            limits.nodes = .max
            limits.attributes = .max
            return limits
        }()
    }
#endif
