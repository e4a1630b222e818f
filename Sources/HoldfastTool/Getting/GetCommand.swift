// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Tool
    internal import ArgumentParser

    struct GetCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "get")
    }
#endif
