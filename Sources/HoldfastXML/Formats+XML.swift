// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import HoldfastServices

#if XML
    extension InputFormat {
        /// XML in the content, as `text/xml` in UTF-8, by XMLCoder.
        ///
        /// Set the encoder up by ``XMLConfiguring``.
        ///
        /// - Parameter rootNode: the name of the outermost element.
        public static func XML(rootNode: String) -> InputFormat {
            InputFormat(name: "XML", encoder: XMLBody(rootNode: rootNode))
        }
    }

    extension OutputFormat {
        /// XML, by XMLCoder, within the default ``XMLLimits``; requests say `Accept: text/xml`.
        ///
        /// Document type declarations are refused, so there are no entities but XML's own five. What is no XML, or beyond the
        /// limits, is an error and never a trap. Set the decoder up by ``XMLConfiguring``.
        public static let XML = OutputFormat.XML(limits: XMLLimits())

        /// XML as ``XML``, within other limits.
        public static func XML(limits: XMLLimits) -> OutputFormat {
            OutputFormat(name: "XML", accept: "text/xml", decoder: XMLBody(limits: limits))
        }
    }
#else
    extension InputFormat {
        /// XML in the content; needs the package trait `XML`.
        @available(
            *,
            unavailable,
            message: "Enable the package trait 'XML': .package(…, traits: [\"XML\"]), or swift build --traits XML"
        )
        public static func XML(rootNode: String) -> InputFormat { .JSON }
    }

    extension OutputFormat {
        /// XML; needs the package trait `XML`.
        @available(
            *,
            unavailable,
            message: "Enable the package trait 'XML': .package(…, traits: [\"XML\"]), or swift build --traits XML"
        )
        public static var XML: OutputFormat { .JSON }
    }
#endif
