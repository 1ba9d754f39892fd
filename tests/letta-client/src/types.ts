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

/** Checks values against the properties of a declared interface. Fields that a type does not have are problems. */
export class Types {
  private readonly checker: ts.TypeChecker;
  private readonly types = new Map<string, ts.Type>();
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
    if (this.checker.isArrayType(type)) {
      const element = this.checker.getTypeArguments(type as ts.TypeReference)[0];
      if (!Array.isArray(value) || !element) return [this.wrong(value, type, at)];
      return value.flatMap((item, i) => this.check(item, element, `${at}[${i}]`));
    }
    if (Array.isArray(value)) return [this.wrong(value, type, at)];
    const found = this.missing(value, type, at);
    const index = this.checker.getIndexTypeOfType(type, ts.IndexKind.String);
    const allowed = this.own[this.nameOf(type)] ?? [];
    for (const [key, field] of Object.entries(value)) {
      const property = this.checker.getPropertyOfType(type, key);
      if (property) {
        const of = this.checker.getTypeOfSymbolAtLocation(property, this.place);
        found.push(...this.check(field, of, `${at}.${key}`), ...this.checkTime(key, field, at));
      } else if (index) {
        found.push(...this.check(field, index, `${at}.${key}`));
      } else if (!allowed.includes(key)) {
        found.push(`${at}.${key}: ${this.nameOf(type)} has no such field`);
      }
    }
    return found;
  }

  private missing(value: object, type: ts.Type, at: string): string[] {
    return this.checker
      .getPropertiesOfType(type)
      .filter((p) => !(p.flags & ts.SymbolFlags.Optional) && !(p.getName() in value))
      .map((p) => `${at}.${p.getName()}: is missing, and ${this.nameOf(type)} needs it`);
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
      const found = this.check(value, member, at);
      if (found.length === 0) return [];
      if (this.tagged(value, member) && (!nearest || found.length < nearest.length)) nearest = found;
    }
    return nearest ?? [`${at}: ${brief(value)} is none of ${members.map((m) => this.nameOf(m)).join(', ')}`];
  }

  private tagged(value: unknown, member: ts.Type): boolean {
    if (typeof value !== 'object' || value === null || !(member.flags & (flags.Object | flags.Intersection)))
      return false;
    if (this.checker.isArrayType(member) || Array.isArray(value)) {
      return this.checker.isArrayType(member) && Array.isArray(value);
    }
    return this.checker.getPropertiesOfType(member).every((property) => {
      const type = this.checker.getNonNullableType(this.checker.getTypeOfSymbolAtLocation(property, this.place));
      const field = (value as Record<string, unknown>)[property.getName()];
      return !type.isStringLiteral() || field === undefined || field === type.value;
    });
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
