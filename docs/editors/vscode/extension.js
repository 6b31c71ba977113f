// Starts the language server and lets it end with the editor. Everything else is the server's.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
  const command = workspace.getConfiguration("cembra").get("command");
  const server = { command, args: ["lsp"] };
  client = new LanguageClient("cembra", "cembra", server, { documentSelector: [{ language: "cembra" }] });
  await client.start();
};

exports.deactivate = () => client?.stop();
