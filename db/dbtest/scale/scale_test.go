package scale_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
)

// calls are the names of all that a function of a package's tests uses.
type calls map[string]bool

// setsLength stands for scale.Of, scale.Pure and scale.Long.
const setsLength = "scale."

// functions returns the functions of the tests of each directory of the module, by name.
func functions(t *testing.T) map[string]map[string]calls {
	t.Helper()
	const root = "../../.."
	all := map[string]map[string]calls{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if all[dir] == nil {
			all[dir] = map[string]calls{}
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
				all[dir][f.Name.Name] = uses(f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// uses returns the names that a function uses, with those of scale that set a length as one.
func uses(f *ast.FuncDecl) calls {
	names := calls{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, is := n.X.(*ast.Ident); is && of.Name == "scale" && n.Sel.Name != "NotRaced" {
				names[setsLength] = true
			}
		case *ast.Ident:
			names[n.Name] = true
		}
		return true
	})
	return names
}

// The runs at longer scales have each test whose length is set here, also by a function that it calls.
func TestScaledTestsAreRunInVerify(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "../../../scripts/scaled-tests.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	scaled, found := regexp.MustCompile(strings.TrimSpace(string(out))), 0
	for dir, all := range functions(t) {
		marked := calls{setsLength: true}
		for before := 0; before < len(marked); {
			before = len(marked)
			for name, used := range all {
				if slices.ContainsFunc(slices.Collect(maps.Keys(used)), func(n string) bool { return marked[n] }) {
					marked[name] = true
				}
			}
		}
		for name := range marked {
			if strings.HasPrefix(name, "Test") && name != "TestMain" {
				found++
				if !scaled.MatchString(name) {
					t.Errorf("scripts/scaled-tests.sh does not print %s of %s", name, dir)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("%d tests have a scale, want at least 20", found)
	}
}

func TestAScaleThatDoesNotExistIsNoScale(t *testing.T) {
	t.Setenv("LOCI_TEST_SCALE", "verfy")
	defer func() {
		if recover() == nil {
			t.Error("a scale that does not exist runs the short tests")
		}
	}()
	scale.Of(1, 2, 3)
}

func TestLongTestsRunFromVerifyOn(t *testing.T) {
	for name, want := range map[string]bool{"": false, "test": false, "verify": true, "all": true} {
		t.Setenv("LOCI_TEST_SCALE", name)
		ran := false
		t.Run("at "+name, func(t *testing.T) {
			scale.Long(t)
			ran = true
		})
		if ran != want {
			t.Errorf("at the scale %q a long test runs: %t", name, ran)
		}
	}
}
