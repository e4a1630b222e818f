// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser

    struct ProxyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "proxy")
    }
#endif
