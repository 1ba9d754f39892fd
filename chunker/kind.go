package chunker

import (
	"mime"
	"path"
	"strings"
)

// Kind is a kind of text. It decides where the text is cut.
type Kind string

// The kinds.
const (
	Prose    Kind = "prose"    // paragraphs of sentences, and every unknown kind
	Markdown Kind = "markdown" // headings, fences, tables, lists
	Code     Kind = "code"     // blocks at the margin with indented lines, including configuration and markup
	Rows     Kind = "rows"     // one record per line: logs, JSON lines, delimited values
)

// KindOf returns a document's kind, by its name if the name tells, else by its media type. JSON, YAML, XML, TOML and
// INI are Code, because a cut at the least indented line keeps their objects and sections together. HTML is Markdown,
// because it is converted to Markdown before it is cut. reStructuredText is Markdown, because its most common headings
// look the same.
func KindOf(name, mediaType string) Kind {
	base := strings.ToLower(path.Base(name))
	if kind, ok := byName[base]; ok {
		return kind
	}
	if kind, ok := byExtension[strings.TrimPrefix(path.Ext(base), ".")]; ok {
		return kind
	}
	return byMediaType(mediaType)
}

// byMediaType returns the kind of a media type. The media type may have parameters.
func byMediaType(mediaType string) Kind {
	media, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return Prose
	}
	_, sub, _ := strings.Cut(media, "/")
	sub = strings.TrimPrefix(strings.TrimPrefix(sub, "vnd."), "x-")
	if kind, ok := bySubtype[sub]; ok {
		return kind
	}
	if strings.HasSuffix(sub, "+json") || strings.HasSuffix(sub, "+xml") || strings.HasSuffix(sub, "+yaml") {
		return Code
	}
	return Prose
}

var bySubtype = kinds(map[Kind]string{
	Markdown: "markdown html xhtml+xml rst",
	Rows:     "csv tab-separated-values ndjson jsonl jsonlines json-lines json-seq log",
	Code: `json xml yaml toml ini javascript ecmascript typescript css scss less python script.python java-source java go
		golang rust c csrc chdr c++ c++src c++hdr csharp ruby perl php httpd-php sh shellscript csh zsh powershell lua
		sql swift kotlin scala haskell erlang elixir clojure lisp scheme r diff patch makefile cmake dockerfile groovy
		dart protobuf graphql properties svg+xml`,
})

var byName = kinds(map[Kind]string{
	Prose: "license licence copying notice authors contributors readme changelog changes news todo install thanks",
	Code: `makefile gnumakefile dockerfile containerfile jenkinsfile vagrantfile gemfile rakefile procfile brewfile podfile
		cmakelists.txt requirements.txt go.mod go.sum go.work .gitignore .gitattributes .dockerignore .editorconfig .env
		.npmrc .bashrc .zshrc .profile .vimrc build workspace`,
})

var byExtension = kinds(map[Kind]string{
	Prose:    "txt text tex adoc asciidoc org",
	Markdown: "md markdown mdown mkd mdx rmd qmd rst html htm xhtml",
	Rows:     "jsonl ndjson csv tsv tab psv log",
	Code: `go rs c h cc cpp cxx hh hpp hxx ino m mm cs fs fsx vb java kt kts scala sc groovy gradle clj cljs cljc edn py
		pyi pyx pyw rb rake gemspec pl pm t raku php phtml lua tcl r jl swift dart zig nim d v vh sv vhd vhdl cr ex exs
		erl hrl hs lhs ml mli elm purs rkt scm ss lisp lsp el fnl f f90 f95 f03 for pas pp ada adb ads cob cbl asm s js
		mjs cjs jsx ts mts cts tsx vue svelte astro coffee css scss sass less styl sh bash zsh fish ksh csh ps1 psm1
		psd1 bat cmd awk sed vim nix sql psql plsql pls graphql gql proto thrift avsc capnp json json5 jsonc geojson
		ipynb webmanifest yaml yml xml xsd xsl xslt svg rss atom wsdl plist pom toml ini cfg conf cnf config properties
		env editorconfig tf tfvars hcl cue dhall jsonnet libsonnet rego bzl bazel star cmake mk mak ninja am ac m4
		dockerfile containerfile diff patch lock tmpl tpl gotmpl j2 jinja jinja2 erb ejs hbs mustache liquid twig haml
		pug jsp asp aspx cshtml razor sol vy move wat glsl vert frag hlsl wgsl metal cu cuh cl ispc qml ui desktop
		service gd cls trigger apex`,
})

// kinds maps each word of the lists to the list's kind.
func kinds(lists map[Kind]string) map[string]Kind {
	table := make(map[string]Kind)
	for kind, words := range lists {
		for word := range strings.FieldsSeq(words) {
			table[word] = kind
		}
	}
	return table
}
