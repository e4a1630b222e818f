// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if XML
    /// How much XML is taken in; what is beyond is refused before a parser sees it.
    ///
    /// The parsers of the platforms have no such limits of their own: a document of a hundred thousand nested elements ends a
    /// process, and one of many attributes or of many references keeps it busy for a time that grows by the square.
    public struct XMLLimits: Sendable, Hashable {
        /// The most bytes of a document; 16 MiB by default.
        public var bytes = 16 << 20
        /// The most elements that stand within each other, 1 to 256; 64 by default.
        public var depth = 64
        /// The most elements and attributes together; 200 000 by default.
        public var nodes = 200_000
        /// The most attributes of one element; 256 by default.
        public var attributes = 256

        /// All defaults.
        public init() {}

        /// No limits, but for the depth, which is 256 at most: for what is written.
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
