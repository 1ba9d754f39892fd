// Checks values at run time against the types that the clients declare.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const flags = ts.TypeFlags;

/** The declarations that values are checked against: an interface whose properties are the types, by their names. */
export interface Declarations {
  source: string;
  name: string;
}

/** What is read of the type of an object or a list. */
interface Shape {
  name: string;
  element: ts.Type | undefined;
  index: ts.Type | undefined;
  fields: Map<string, ts.Type>;
  required: string[];
  tags: [string, string][]; // fields that are literals, and these
}

/** Checks values against the properties of a declared interface. Fields that a type does not have are problems. */
export class Types {
  private readonly checker: ts.TypeChecker;
  private readonly types = new Map<string, ts.Type>();
  private readonly shapes = new Map<ts.Type, Shape>();
  private readonly place: ts.SourceFile;

  /** own lists the fields that Loci adds to a type, by the type's name. */
  constructor(
    declared: Declarations,
    private readonly own: Record<string, string[]>,
  ) {
    const file = `${root}/src/declared.generated.ts`;
    const options: ts.CompilerOptions = {
      strict: true,
      skipLibCheck: true,
      noEmit: true,
      types: [],
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
    };
    const host = ts.createCompilerHost(options);
    const { getSourceFile, fileExists, readFile } = host;
    host.fileExists = (name) => name === file || fileExists(name);
    host.readFile = (name) => (name === file ? declared.source : readFile(name));
    host.getSourceFile = (name, ...rest) =>
      name === file ? ts.createSourceFile(name, declared.source, rest[0]) : getSourceFile(name, ...rest);
    const program = ts.createProgram([file], options, host);
    const place = program.getSourceFile(file);
    if (!place) throw new Error('the declarations cannot be read');
    const wrong = program.getSemanticDiagnostics(place);
    if (wrong[0]) throw new Error(ts.flattenDiagnosticMessageText(wrong[0].messageText, '\n'));
    this.place = place;
    this.checker = program.getTypeChecker();
    for (const statement of place.statements) {
      if (!ts.isInterfaceDeclaration(statement) || statement.name.text !== declared.name) continue;
      for (const property of this.checker.getTypeAtLocation(statement).getProperties()) {
        this.types.set(property.getName(), this.checker.getTypeOfSymbolAtLocation(property, place));
      }
    }
  }

  /** The problems of a value that should have the named type, each with the path of its place. */
  problems(value: unknown, name: string): string[] {
    const type = this.types.get(name);
    if (!type) return [`there is no type ${name}`];
    return this.check(value, type, name);
  }

  /** The fields of the objects that a method takes, without the options that every request has. */
  fieldsOf(name: string): string[] {
    const type = this.types.get(name);
    if (!type) throw new Error(`there is no type ${name}`);
    const fields = new Set<string>();
    for (const list of type.isUnion() ? type.types : [type]) {
      for (const argument of this.checker.getTypeArguments(list as ts.TypeReference)) {
        for (const member of argument.isUnion() ? argument.types : [argument]) {
          const object = (member.flags & (flags.Object | flags.Intersection)) !== 0;
          if (!object || this.nameOf(member).endsWith('RequestOptions')) continue;
          for (const property of this.checker.getPropertiesOfType(member)) fields.add(property.getName());
        }
      }
    }
    return [...fields];
  }

  private check(value: unknown, type: ts.Type, at: string): string[] {
    if (type.flags & (flags.Any | flags.Unknown)) return [];
    const primitivePart = type.isIntersection() && type.types.find((t) => t.flags & (flags.String | flags.Number));
    if (primitivePart) return this.check(value, primitivePart, at); // such as string & {}
    if (type.isUnion()) return this.checkUnion(value, type.types, at);
    if (type.isLiteral()) return type.value === value ? [] : [this.wrong(value, type, at)];
    if (type.flags & flags.BooleanLiteral) {
      return String(value) === this.checker.typeToString(type) ? [] : [this.wrong(value, type, at)];
    }
    const primitive: [ts.TypeFlags, boolean][] = [
      [flags.String, typeof value === 'string'],
      [flags.Number, typeof value === 'number'],
      [flags.Boolean, typeof value === 'boolean'],
      [flags.Null, value === null],
      [flags.Undefined | flags.Void, value === undefined],
      [flags.Object | flags.Intersection, typeof value === 'object' && value !== null],
    ];
    const fits = primitive.find(([flag]) => type.flags & flag);
    if (!fits) throw new Error(`${at}: the type ${this.checker.typeToString(type)} cannot be checked`);
    if (!fits[1]) return [this.wrong(value, type, at)];
    return typeof value === 'object' && value !== null ? this.checkObject(value, type, at) : [];
  }

  private checkObject(value: object, type: ts.Type, at: string): string[] {
    const shape = this.shapeOf(type);
    if (shape.element || Array.isArray(value)) {
      const { element } = shape;
      if (!Array.isArray(value) || !element) return [this.wrong(value, type, at)];
      return value.flatMap((item, i) => this.check(item, element, `${at}[${i}]`));
    }
    const found: string[] = [];
    for (const name of shape.required) {
      if (!(name in value)) found.push(`${at}.${name}: is missing, and ${shape.name} needs it`);
    }
    for (const [key, field] of Object.entries(value)) {
      const of = shape.fields.get(key) ?? shape.index;
      if (of) found.push(...this.check(field, of, `${at}.${key}`), ...this.checkTime(key, field, at));
      else if (!this.own[shape.name]?.includes(key)) found.push(`${at}.${key}: ${shape.name} has no such field`);
    }
    return found;
  }

  private shapeOf(type: ts.Type): Shape {
    let shape = this.shapes.get(type);
    if (!shape) {
      const properties = this.checker.getPropertiesOfType(type);
      const typeOf = (p: ts.Symbol) => this.checker.getTypeOfSymbolAtLocation(p, this.place);
      shape = {
        name: this.nameOf(type),
        element: this.checker.isArrayType(type)
          ? this.checker.getTypeArguments(type as ts.TypeReference)[0]
          : undefined,
        index: this.checker.getIndexTypeOfType(type, ts.IndexKind.String),
        fields: new Map(properties.map((p) => [p.getName(), typeOf(p)])),
        required: properties.filter((p) => !(p.flags & ts.SymbolFlags.Optional)).map((p) => p.getName()),
        tags: properties.flatMap((p) => {
          const tag = this.checker.getNonNullableType(typeOf(p));
          return tag.isStringLiteral() ? [[p.getName(), tag.value] as [string, string]] : [];
        }),
      };
      this.shapes.set(type, shape);
    }
    return shape;
  }

  /** Letta's Python client reads the times that its types declare as strings here. */
  private checkTime(key: string, value: unknown, at: string): string[] {
    if (!/_at$|^date$|^timestamp$/.test(key) || typeof value !== 'string') return [];
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(value) ? [] : [`${at}.${key}: ${value}`];
  }

  /** A value of a union has the member whose literal fields are the value's, or else any one without a problem. */
  private checkUnion(value: unknown, members: ts.Type[], at: string): string[] {
    let nearest: string[] | undefined;
    for (const member of members) {
      const object = (member.flags & (flags.Object | flags.Intersection)) !== 0;
      if (object && !this.tagged(value, member)) continue;
      const found = this.check(value, member, at);
      if (found.length === 0) return [];
      if (object && (!nearest || found.length < nearest.length)) nearest = found;
    }
    return nearest ?? [`${at}: ${brief(value)} is none of ${members.map((m) => this.nameOf(m)).join(', ')}`];
  }

  /** Reports whether a value can be of an object's type, by the fields that are literals. */
  private tagged(value: unknown, member: ts.Type): boolean {
    if (member.isIntersection() && typeof value !== 'object') return true; // such as string & {}
    if (typeof value !== 'object' || value === null) return false;
    const { element, tags } = this.shapeOf(member);
    if (element || Array.isArray(value)) return element !== undefined && Array.isArray(value);
    const fields = value as Record<string, unknown>;
    return tags.every(([name, tag]) => fields[name] === undefined || fields[name] === tag);
  }

  private nameOf(type: ts.Type): string {
    return this.checker
      .typeToString(type, undefined, ts.TypeFormatFlags.UseFullyQualifiedType)
      .replace(/import\([^)]*\)\./g, '')
      .slice(0, 120);
  }

  private wrong(value: unknown, type: ts.Type, at: string): string {
    return `${at}: ${brief(value)} is not ${this.nameOf(type)}`;
  }
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined';
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
