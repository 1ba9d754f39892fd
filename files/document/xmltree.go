package document

import "slices"

// tree is an element with its child elements and without text: the properties of a paragraph, a style, a list. All
// methods may be called on nil, which has no attributes and no children.
type tree struct {
	element

	children []*tree
}

// Limits of a tree. Anything beyond them is dropped.
const (
	maxTreeElements   = 2000
	maxTreeAttributes = 30 // per element
)

// tree reads the element e, which was just begun, and passes it to use.
func (x *xmlReader) tree(e element, use func(*tree)) error {
	left := maxTreeElements
	t, err := x.subtree(e, &left)
	if err == nil {
		use(t)
	}
	return err
}

func (x *xmlReader) subtree(e element, left *int) (*tree, error) {
	e.attrs = slices.Clone(e.attrs[:min(len(e.attrs), maxTreeAttributes)])
	t := &tree{element: e}
	return t, x.each(func(e element) error {
		if *left--; *left < 0 {
			return nil
		}
		child, err := x.subtree(e, left)
		t.children = append(t.children, child)
		return err
	})
}

// at returns the first descendant that a path of child names leads to, or nil.
func (t *tree) at(path ...string) *tree {
	for _, name := range path {
		all := t.all(name)
		if len(all) == 0 {
			return nil
		}
		t = all[0]
	}
	return t
}

// all returns the children with a name.
func (t *tree) all(name string) (found []*tree) {
	if t == nil {
		return nil
	}
	for _, child := range t.children {
		if child.name == name {
			found = append(found, child)
		}
	}
	return found
}

// attr returns the value of an attribute, as element.attr does.
func (t *tree) attr(name string) string {
	if t == nil {
		return ""
	}
	return t.element.attr(name)
}

// val returns the attribute w:val of a child. Word stores nearly everything in w:val.
func (t *tree) val(child string) string { return t.at(child).attr("w:val") }

// isOn reports whether a child that is a switch exists and is not set to off.
func (t *tree) isOn(child string) bool {
	val := t.val(child)
	return t.at(child) != nil && val != "0" && val != "false" && val != "off"
}
