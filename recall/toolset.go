package recall

// Toolset reports whether a model has a tool. Nil has every tool.
type Toolset func(name string) bool

// Hint returns a text that tells a model to use a tool, empty if the model does not have it. Texts for a model name
// tools only by it.
func (has Toolset) Hint(tool, text string) string {
	if has != nil && !has(tool) {
		return ""
	}
	return text
}
