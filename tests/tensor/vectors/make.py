"""Makes the vectors of this folder with numpy 1.24 and onnx 1.12: python3 make.py"""
import base64, io, json, os, zlib
import numpy as np
from onnx import helper, TensorProto as T, numpy_helper
b64=lambda b: base64.b64encode(b).decode()
OUT=os.path.dirname(os.path.abspath(__file__))+'/'
def hexs(a):
    a=np.ascontiguousarray(a); 
    return b64(a.tobytes())
# ---- random
streams=[]
rs=np.random.RandomState(0)
ints={'bool':(0,2),'uint8':None,'int8':None,'uint16':None,'int16':None,'uint32':None,'int32':None,'uint64':None,'int64':None}
def call(g,kind,args,n):
    if kind=='random': v=g.random(n)
    elif kind=='random32': v=g.random(n,dtype=np.float32)
    elif kind=='uniform': v=g.uniform(args[0],args[1],n)
    elif kind=='integers': v=g.integers(int(args[1]),int(args[2]),n,dtype=args[0])
    return {'kind':kind,'args':args,'count':n,'bytes':hexs(v)}
for seed in [0,1,42,1234,2**32-1,2**32,2**53-1,2**64+5,2**127+12345,2**200+7]:
    g=np.random.default_rng(seed)
    calls=[call(g,'random',[],3),call(g,'random32',[],3),call(g,'uniform',[-40,40],3)]
    streams.append({'seed':str(seed),'calls':calls})
def rng_ranges(dt):
    ii=np.iinfo(dt); lo,hi=int(ii.min),int(ii.max)
    out=[(lo,hi+1),(lo,hi),(lo+1,hi+1),(0,1),(0,2),(0,3),(0,80),(max(lo,-40),40),(hi,hi+1),(lo,lo+3),(5,100),(0,127),(0, hi//2+2)]
    if ii.bits>=32: out+=[(0,2**31-5),(lo,lo+2**31+12345),(0,3*2**29)]
    if ii.bits==64: out+=[(0,2**32-1),(0,2**32),(0,2**32+1),(lo,lo+2**63+1),(0,2**53+3),(hi-2**33,hi)]
    return [r for r in out if lo<=r[0]<r[1]<=hi+1]
for dt in ['uint8','int8','uint16','int16','uint32','int32','uint64','int64']:
    g=np.random.default_rng(1000+np.dtype(dt).num)
    calls=[call(g,'integers',[dt,str(a),str(b)],37) for a,b in rng_ranges(dt)]
    streams.append({'seed':str(1000+np.dtype(dt).num),'calls':calls})
g=np.random.default_rng(7)
calls=[call(g,'integers',['bool','0','2'],70),call(g,'integers',['bool','1','2'],5),call(g,'integers',['bool','0','1'],5),call(g,'integers',['bool','0','2'],3)]
streams.append({'seed':'7','calls':calls})
# mixed: the 32-bit half left over carries from call to call
g=np.random.default_rng(99); calls=[]
for i in range(60):
    k=['random','random32','uniform','integers'][rs.randint(4)]
    n=int(rs.randint(1,6))
    if k=='integers':
        dt=['uint8','int8','uint16','int16','uint32','int32','uint64','int64','bool'][rs.randint(9)]
        if dt=='bool': args=['bool','0','2']
        else:
            r=rng_ranges(dt); a,b=r[rs.randint(len(r))]; args=[dt,str(a),str(b)]
    elif k=='uniform': args=[float(rs.randint(-9,0)),float(rs.randint(1,9))]
    else: args=[]
    calls.append(call(g,k,args,n))
streams.append({'seed':'99','calls':calls})
# tweaked
tweaked=[]
for dt,np_dt in [('float32','f4'),('float64','f8'),('float16','f2')]:
    for shape in [[],[3],[2,3,4]]:
        tweaked.append({'dtype':dt,'seed':1234,'shape':shape,'bytes':hexs(np.random.default_rng(1234).uniform(-40,40,shape).astype(np_dt))})
for dt in ['int8','int16','int32','int64']:
    tweaked.append({'dtype':dt,'seed':1234,'shape':[2,3,5],'bytes':hexs(np.random.default_rng(1234).integers(-40,40,(2,3,5),dtype=dt))})
for dt in ['uint8','uint16','uint32','uint64']:
    tweaked.append({'dtype':dt,'seed':1234,'shape':[2,3,5],'bytes':hexs(np.random.default_rng(1234).integers(0,80,(2,3,5),dtype=dt))})
tweaked.append({'dtype':'bool','seed':1234,'shape':[2,3,7],'bytes':hexs(np.random.default_rng(1234).integers(0,2,(2,3,7),dtype=bool))})
# long streams by checksum
long=[]
for kind,args in [('random',[]),('uniform',[-40,40]),('integers',['int8','-40','40']),('integers',['int64','-40','40']),('integers',['uint16','0','50000']),('integers',['uint32','0',str(3*2**30)])]:
    g=np.random.default_rng(5); c=call(g,kind,args,200000); long.append({'kind':kind,'args':args,'count':200000,'crc':zlib.crc32(base64.b64decode(c['bytes']))})
json.dump({'streams':streams,'tweaked':tweaked,'long':long},open(OUT+'random.json','w'))
# ---- float16 from numpy
vals=[0.0,-0.0,1.0,-1.0,65504.0,65519.999,65520.0,65536.0,1e300,-1e300,float('inf'),-float('inf'),5.960464477539063e-08,2.980232238769531e-08,2.9802322387695315e-08,2.98023223876953e-08,8.940696716308594e-08,6.097555160522461e-05,6.103515625e-05,6.1005353927612305e-05,1e-320,0.1,1/3,2049.0,2051.0,1+2**-11,1+2**-11+2**-40,1+3*2**-11]
u=np.concatenate([np.array(vals),np.ldexp(rs.uniform(-1,1,900),rs.randint(-30,20,900))])
f16=u.astype('f2')
json.dump({'float64':hexs(u),'float16':hexs(f16)},open(OUT+'float16.json','w'))
# ---- npy
def npy(a,version=None):
    f=io.BytesIO(); np.lib.format.write_array(f,a,version=version); return b64(f.getvalue())
files=[]
base=np.arange(24).reshape(2,3,4)
for d in ['|b1','|i1','|u1','<i2','>i2','<i4','>i4','<i8','>i8','<u2','>u2','<u4','>u4','<u8','>u8','<f2','>f2','<f4','>f4','<f8','>f8','<c8','>c8','<c16','>c16']:
    a=(base%2 if d=='|b1' else base*(1+0.5j) if 'c' in d else base-3 if 'u' not in d else base).astype(d)
    le=a.astype(a.dtype.newbyteorder('<'))
    for order in 'CF':
        x=np.asfortranarray(a) if order=='F' else a
        files.append({'descr':d,'order':order,'shape':[2,3,4],'file':npy(x),'bytes':hexs(le)})
for v in [(1,0),(2,0),(3,0)]:
    files.append({'descr':'<f4','order':'C','shape':[2,3,4],'file':npy(base.astype('f4'),v),'bytes':hexs(base.astype('f4'))})
files.append({'descr':'<f4','order':'C','shape':[],'file':npy(np.array(1.5,'f4')),'bytes':hexs(np.array(1.5,'f4'))})
files.append({'descr':'<f4','order':'C','shape':[0,3],'file':npy(np.zeros((0,3),'f4')),'bytes':''})
files.append({'descr':'<i8','order':'C','shape':[5],'file':npy(np.arange(5)),'bytes':hexs(np.arange(5))})
texts=['','a','héé','日本','😀 end']
strs=[{'file':npy(np.array(texts)),'texts':texts,'shape':[5]},{'file':npy(np.array(texts).astype('>U8')),'texts':texts,'shape':[5]},
 {'file':npy(np.array([t.encode() for t in texts])),'texts':texts,'shape':[5]},
 {'file':npy(np.asfortranarray(np.array([['a','bb','c'],['dd','e','f']]))),'texts':['a','bb','c','dd','e','f'],'shape':[2,3]}]
objf=io.BytesIO(); np.save(objf,np.array([1,'x'],dtype=object),allow_pickle=True)
st=npy(np.zeros(2,dtype=[('a','f4'),('b','i4')]))
f=io.BytesIO(); np.savez(f,a=base.astype('f4'),b=np.array(['x','yy']),empty=np.zeros((0,),'i4')); npz=b64(f.getvalue())
f=io.BytesIO(); np.savez_compressed(f,a=base.astype('f4'),zeros=np.zeros((50,50),'f8')); npzc=b64(f.getvalue())
json.dump({'numbers':files,'strings':strs,'object':b64(objf.getvalue()),'structured':st,'npz':npz,'npzCompressed':npzc},open(OUT+'npy.json','w'))
# ---- TensorProto typed fields
protos=[]
def add(name,dtype,code,dims,vals,expect,raw=False):
    t=helper.make_tensor(name,code,dims,vals,raw=raw); protos.append({'name':name,'dtype':dtype,'dims':dims,'proto':b64(t.SerializeToString()),'bytes':hexs(expect)})
for dtype,code,nd in [('float32',T.FLOAT,'f4'),('float64',T.DOUBLE,'f8'),('int8',T.INT8,'i1'),('int16',T.INT16,'i2'),('int32',T.INT32,'i4'),('int64',T.INT64,'i8'),('uint8',T.UINT8,'u1'),('uint16',T.UINT16,'u2'),('uint32',T.UINT32,'u4'),('uint64',T.UINT64,'u8'),('bool',T.BOOL,'?'),('float16',T.FLOAT16,'f2'),('complex64',T.COMPLEX64,'c8'),('complex128',T.COMPLEX128,'c16')]:
    if nd[0] in 'iu':
        ii=np.iinfo(nd); a=np.array([0,1,ii.max,ii.min,ii.max//2,100],nd)
    elif nd=='?': a=np.array([1,0,0,1,1,0],'?')
    elif nd[0]=='c': a=np.array([1+2j,-3.5j,0,1e3,-1,0.1],nd)
    else: a=np.array([0,-0.0,1.5,-2.25,np.inf,0.1],nd)
    add(dtype+'_typed',dtype,code,[2,3],a.flatten().tolist() if nd!='f2' else a,a)
    if nd[0]!='c': 
        t=numpy_helper.from_array(a.reshape(2,3),dtype+'_raw'); protos.append({'name':dtype+'_raw','dtype':dtype,'dims':[2,3],'proto':b64(t.SerializeToString()),'bytes':hexs(a)})
# bfloat16 typed: patterns of float32 truncated exactly
v=[1.0,-2.0,0.5,3.0]; t=helper.make_tensor('bfloat16_typed',T.BFLOAT16,[4],v); protos.append({'name':'bfloat16_typed','dtype':'bfloat16','dims':[4],'proto':b64(t.SerializeToString()),'bytes':hexs((np.array(v,'f4').view('u4')>>16).astype('u2'))})
texts=['','abc','日本','x y']
t=helper.make_tensor('strings',T.STRING,[2,2],[s.encode() for s in texts]); 
json.dump({'protos':protos,'strings':{'texts':texts,'proto':b64(t.SerializeToString())}},open(OUT+'tensor-proto.json','w'))
