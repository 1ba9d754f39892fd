package recall

// Toolset reports whether a model has a tool. Nil has every tool.
type Toolset func(name string) bool

// Hint returns a text that tells a model to use a tool; empty if the model does not have the tool. Texts for a model
// must name tools only through Hint.
func (has Toolset) Hint(tool, text string) string {
	if has != nil && !has(tool) {
		return ""
	}
	return text
}
